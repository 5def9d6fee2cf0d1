"""The broker's settings under Kafka's names: typed fields by topic, read and checked as one table.

Other packages import from here; the modules are this package's own.
"""

from broker_impl.config.addresses import Endpoint, parse_address, parse_endpoint
from broker_impl.config.broker_config import BrokerConfig, Source, Sourced
from broker_impl.config.listener_checks import check_tls
from broker_impl.config.logins import Login
from broker_impl.config.names import DYNAMIC_OF_A_LISTENER, is_known, notes, unusable_setting
from broker_impl.config.network import KAFKA_2_8
from broker_impl.config.reading import check_active, parse
from broker_impl.config.replication import LEADER_SELECTOR, RACK_AWARE_SELECTOR
from broker_impl.config.security import AUTHORIZER, MECHANISMS
from broker_impl.config.setting import Setting
from broker_impl.config.table import SETTINGS, TOPIC_SETTINGS
from broker_impl.config.topic_only import TOPIC_ONLY_SETTINGS

__all__ = [
    "AUTHORIZER",
    "DYNAMIC_OF_A_LISTENER",
    "KAFKA_2_8",
    "LEADER_SELECTOR",
    "MECHANISMS",
    "RACK_AWARE_SELECTOR",
    "SETTINGS",
    "TOPIC_ONLY_SETTINGS",
    "TOPIC_SETTINGS",
    "BrokerConfig",
    "Endpoint",
    "Login",
    "Setting",
    "Source",
    "Sourced",
    "check_active",
    "check_tls",
    "is_known",
    "notes",
    "parse",
    "parse_address",
    "parse_endpoint",
    "unusable_setting",
]
