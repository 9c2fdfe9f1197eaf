"""The nodes of a round: their free room (`room`), its order (`index`), and finding the best fit in it (`search`)."""
