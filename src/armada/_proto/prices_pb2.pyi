import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from armada_client.k8s.io.apimachinery.pkg.api.resource import generated_pb2 as _generated_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PricingPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRICING_PHASE_UNSPECIFIED: _ClassVar[PricingPhase]
    PRICING_PHASE_QUEUEING: _ClassVar[PricingPhase]
    PRICING_PHASE_RUNNING: _ClassVar[PricingPhase]

class PriceBand(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRICE_BAND_UNSPECIFIED: _ClassVar[PriceBand]
    PRICE_BAND_A: _ClassVar[PriceBand]
    PRICE_BAND_B: _ClassVar[PriceBand]
    PRICE_BAND_C: _ClassVar[PriceBand]
    PRICE_BAND_D: _ClassVar[PriceBand]
    PRICE_BAND_E: _ClassVar[PriceBand]
    PRICE_BAND_F: _ClassVar[PriceBand]
    PRICE_BAND_G: _ClassVar[PriceBand]
    PRICE_BAND_H: _ClassVar[PriceBand]
PRICING_PHASE_UNSPECIFIED: PricingPhase
PRICING_PHASE_QUEUEING: PricingPhase
PRICING_PHASE_RUNNING: PricingPhase
PRICE_BAND_UNSPECIFIED: PriceBand
PRICE_BAND_A: PriceBand
PRICE_BAND_B: PriceBand
PRICE_BAND_C: PriceBand
PRICE_BAND_D: PriceBand
PRICE_BAND_E: PriceBand
PRICE_BAND_F: PriceBand
PRICE_BAND_G: PriceBand
PRICE_BAND_H: PriceBand

class RetrieveBidsRequest(_message.Message):
    __slots__ = ("queues",)
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, queues: _Optional[_Iterable[str]] = ...) -> None: ...

class RetrieveBidsResponse(_message.Message):
    __slots__ = ("queue_bids", "pool_resource_units")
    class QueueBidsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: QueueBids
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[QueueBids, _Mapping]] = ...) -> None: ...
    class PoolResourceUnitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: PoolResourceUnits
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[PoolResourceUnits, _Mapping]] = ...) -> None: ...
    QUEUE_BIDS_FIELD_NUMBER: _ClassVar[int]
    POOL_RESOURCE_UNITS_FIELD_NUMBER: _ClassVar[int]
    queue_bids: _containers.MessageMap[str, QueueBids]
    pool_resource_units: _containers.MessageMap[str, PoolResourceUnits]
    def __init__(self, queue_bids: _Optional[_Mapping[str, QueueBids]] = ..., pool_resource_units: _Optional[_Mapping[str, PoolResourceUnits]] = ...) -> None: ...

class QueueBids(_message.Message):
    __slots__ = ("pool_bids",)
    class PoolBidsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: PoolBids
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[PoolBids, _Mapping]] = ...) -> None: ...
    POOL_BIDS_FIELD_NUMBER: _ClassVar[int]
    pool_bids: _containers.MessageMap[str, PoolBids]
    def __init__(self, pool_bids: _Optional[_Mapping[str, PoolBids]] = ...) -> None: ...

class PoolResourceUnits(_message.Message):
    __slots__ = ("resources",)
    class ResourcesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _generated_pb2.Quantity
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_generated_pb2.Quantity, _Mapping]] = ...) -> None: ...
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    resources: _containers.MessageMap[str, _generated_pb2.Quantity]
    def __init__(self, resources: _Optional[_Mapping[str, _generated_pb2.Quantity]] = ...) -> None: ...

class PoolBids(_message.Message):
    __slots__ = ("price_band_bids", "fallback_bids")
    PRICE_BAND_BIDS_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_BIDS_FIELD_NUMBER: _ClassVar[int]
    price_band_bids: _containers.RepeatedCompositeFieldContainer[PriceBandBid]
    fallback_bids: PriceBandBids
    def __init__(self, price_band_bids: _Optional[_Iterable[_Union[PriceBandBid, _Mapping]]] = ..., fallback_bids: _Optional[_Union[PriceBandBids, _Mapping]] = ...) -> None: ...

class PriceBandBid(_message.Message):
    __slots__ = ("price_band", "price_band_bids")
    PRICE_BAND_FIELD_NUMBER: _ClassVar[int]
    PRICE_BAND_BIDS_FIELD_NUMBER: _ClassVar[int]
    price_band: PriceBand
    price_band_bids: PriceBandBids
    def __init__(self, price_band: _Optional[_Union[PriceBand, str]] = ..., price_band_bids: _Optional[_Union[PriceBandBids, _Mapping]] = ...) -> None: ...

class PriceBandBids(_message.Message):
    __slots__ = ("pricing_phase_bids",)
    PRICING_PHASE_BIDS_FIELD_NUMBER: _ClassVar[int]
    pricing_phase_bids: _containers.RepeatedCompositeFieldContainer[PricingPhaseBid]
    def __init__(self, pricing_phase_bids: _Optional[_Iterable[_Union[PricingPhaseBid, _Mapping]]] = ...) -> None: ...

class PricingPhaseBid(_message.Message):
    __slots__ = ("pricing_phase", "bid")
    PRICING_PHASE_FIELD_NUMBER: _ClassVar[int]
    BID_FIELD_NUMBER: _ClassVar[int]
    pricing_phase: PricingPhase
    bid: Bid
    def __init__(self, pricing_phase: _Optional[_Union[PricingPhase, str]] = ..., bid: _Optional[_Union[Bid, _Mapping]] = ...) -> None: ...

class Bid(_message.Message):
    __slots__ = ("amount", "last_updated")
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_UPDATED_FIELD_NUMBER: _ClassVar[int]
    amount: float
    last_updated: _timestamp_pb2.Timestamp
    def __init__(self, amount: _Optional[float] = ..., last_updated: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PriorityOverrideRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PriorityOverrideResponse(_message.Message):
    __slots__ = ("poolPriorityOverrides",)
    POOLPRIORITYOVERRIDES_FIELD_NUMBER: _ClassVar[int]
    poolPriorityOverrides: _containers.RepeatedCompositeFieldContainer[PoolPriorityOverrides]
    def __init__(self, poolPriorityOverrides: _Optional[_Iterable[_Union[PoolPriorityOverrides, _Mapping]]] = ...) -> None: ...

class PoolPriorityOverrides(_message.Message):
    __slots__ = ("pool", "overrides")
    class OverridesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    POOL_FIELD_NUMBER: _ClassVar[int]
    OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    pool: str
    overrides: _containers.ScalarMap[str, float]
    def __init__(self, pool: _Optional[str] = ..., overrides: _Optional[_Mapping[str, float]] = ...) -> None: ...
