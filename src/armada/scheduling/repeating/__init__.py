"""What makes a round repeatable: where its clock stopped it, and the capsule that holds it. PURE."""
