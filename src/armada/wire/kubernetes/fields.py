"""How Kubernetes writes its protobuf fields in JSON, where that differs from protobuf's own JSON.

Quantities, ports that may be names, and times are scalars in JSON; some messages are only a wrapper in protobuf and
their members stand one level higher in JSON; and a scalar that Go holds by pointer means something even when it is
zero, while one held by value is written always and means nothing when it is zero.
"""

from typing import Final, cast

from google.protobuf.descriptor import Descriptor, FieldDescriptor

QUANTITY: Final = "k8s.io.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING: Final = "k8s.io.apimachinery.pkg.util.intstr.IntOrString"
TIMES: Final = frozenset(
    {"k8s.io.apimachinery.pkg.apis.meta.v1.Time", "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime"},
)
RAW_JSON: Final = "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1"

EMBEDDED: Final = frozenset(
    {"volumeSource", "handler", "ephemeralContainerCommon", "localObjectReference", "ingressRuleValue"},
)
"""Fields whose members stand in the parent's place in JSON."""

BY_VALUE: Final = frozenset(
    {"resources", "metadata", "status", "loadBalancer", "creationTimestamp", "divisor", "targetPort"},
)
"""Message fields that Go holds by value and so writes always: an empty one means nothing."""

_POINTERS: Final[dict[str, str]] = {
    "AppArmorProfile": "localhostProfile",
    "AzureDiskVolumeSource": "cachingMode fsType readOnly kind",
    "CSIVolumeSource": "readOnly fsType",
    "ClientIPConfig": "timeoutSeconds",
    "ClusterTrustBundleProjection": "name signerName optional",
    "ConfigMapEnvSource": "optional",
    "ConfigMapKeySelector": "optional",
    "ConfigMapProjection": "optional",
    "ConfigMapVolumeSource": "defaultMode optional",
    "Container": "restartPolicy",
    "DownwardAPIVolumeFile": "mode",
    "DownwardAPIVolumeSource": "defaultMode",
    "EphemeralContainerCommon": "restartPolicy",
    "FCVolumeSource": "lun",
    "GRPCAction": "service",
    "HTTPIngressPath": "pathType",
    "HostPathVolumeSource": "type",
    "ISCSIVolumeSource": "initiatorName",
    "IngressSpec": "ingressClassName",
    "KeyToPath": "mode",
    "ObjectMeta": "deletionGracePeriodSeconds",
    "OwnerReference": "controller blockOwnerDeletion",
    "PersistentVolumeClaimSpec": "storageClassName volumeMode volumeAttributesClassName",
    "PodDNSConfigOption": "value",
    "PodResourceClaim": "resourceClaimName resourceClaimTemplateName",
    "PodSecurityContext": (
        "runAsUser runAsGroup runAsNonRoot fsGroup supplementalGroupsPolicy fsGroupChangePolicy seLinuxChangePolicy"
    ),
    "PodSpec": (
        "terminationGracePeriodSeconds activeDeadlineSeconds automountServiceAccountToken shareProcessNamespace"
        " priority runtimeClassName enableServiceLinks preemptionPolicy setHostnameAsFQDN hostUsers"
    ),
    "Probe": "terminationGracePeriodSeconds",
    "ProjectedVolumeSource": "defaultMode",
    "SeccompProfile": "localhostProfile",
    "SecretEnvSource": "optional",
    "SecretKeySelector": "optional",
    "SecretProjection": "optional",
    "SecretVolumeSource": "defaultMode optional",
    "SecurityContext": (
        "privileged runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem allowPrivilegeEscalation procMount"
    ),
    "ServiceAccountTokenProjection": "expirationSeconds",
    "ServicePort": "appProtocol",
    "ServiceSpec": (
        "ipFamilyPolicy allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy trafficDistribution"
    ),
    "Toleration": "tolerationSeconds",
    "TopologySpreadConstraint": "minDomains nodeAffinityPolicy nodeTaintsPolicy",
    "TypedLocalObjectReference": "apiGroup",
    "TypedObjectReference": "apiGroup namespace",
    "VolumeMount": "recursiveReadOnly mountPropagation",
    "WindowsSecurityContextOptions": "gmsaCredentialSpecName gmsaCredentialSpec runAsUserName hostProcess",
}
POINTERS: Final = frozenset((message, field) for message, names in _POINTERS.items() for field in names.split())
"""Scalars that Go holds by pointer, as (message, field): a zero that is present is meant."""

ALWAYS_TEXT: Final = frozenset({"restartPolicy"})
"""Pointers to text where an empty text means nothing all the same."""


def is_kubernetes(message: Descriptor) -> bool:
    """Whether the message is one of Kubernetes' own."""
    return message.full_name.startswith("k8s.io.")


def owner(field: FieldDescriptor) -> Descriptor:
    """The message that declares the field."""
    return cast(Descriptor, field.containing_type)


def value_field(field: FieldDescriptor) -> FieldDescriptor:
    """The field of a map's values."""
    return cast(Descriptor, field.message_type).fields_by_name["value"]


def key_field(field: FieldDescriptor) -> FieldDescriptor:
    """The field of a map's keys."""
    return cast(Descriptor, field.message_type).fields_by_name["key"]


def is_embedded(field: FieldDescriptor) -> bool:
    """Whether the members of this message field stand in the parent's place."""
    return field.name in EMBEDDED and is_kubernetes(owner(field))


def keeps_zero(field: FieldDescriptor) -> bool:
    """Whether a zero in this field says something when the field is present."""
    if field.message_type is not None:
        return field.name not in BY_VALUE
    message = owner(field)
    return not is_kubernetes(message) or ((message.name, field.name) in POINTERS and field.name not in ALWAYS_TEXT)


def is_map(field: FieldDescriptor) -> bool:
    """Whether the field is a protobuf map."""
    kind = field.message_type
    return kind is not None and kind.GetOptions().map_entry
