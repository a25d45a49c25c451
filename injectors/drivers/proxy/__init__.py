"""The proxy driver: the one door to mitmproxy.

`run` knows nothing of mitmproxy; `engine`, `sockets`, `prompt` and `lean` hold what depends on its insides; `hooks`
and `crossing` are the way of a request; `driver` is what the harness talks to.
"""

from injectors.drivers.proxy.driver import ProxyDriver
from injectors.drivers.proxy.run import DriverError

__all__ = ["DriverError", "ProxyDriver"]
