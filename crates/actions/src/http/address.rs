//! Which addresses are of the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one that anybody may be asked to connect to: no host of ours, no neighbour of it, nothing that
/// is a way around that (IPv4 in IPv6, tunnels, translators), and nothing that is no single host.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Whether an address can be connected to at all: also a private one is a single host.
pub(super) fn is_host(address: IpAddr) -> bool {
    let unmapped = address.to_canonical();
    let is_broadcast = matches!(unmapped, IpAddr::V4(it) if it.is_broadcast());
    !(unmapped.is_unspecified() || unmapped.is_multicast() || is_broadcast)
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !matches!(
        (a, b, c),
        (0 | 10 | 127 | 224..=255, _, _)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    // Only global unicast; mapped and translated IPv4 (`::ffff:0:0/96`, `64:ff9b::/96`), loopback, unique local, link
    // local, multicast and discard are all outside of it.
    let is_global_unicast = (0x2000..=0x3fff).contains(&a);
    let is_teredo_or_special = a == 0x2001 && b < 0x0200;
    let is_documentation = (a == 0x2001 && b == 0x0db8) || (a == 0x3fff && b < 0x1000);
    let is_6to4 = a == 0x2002;
    is_global_unicast && !(is_teredo_or_special || is_documentation || is_6to4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_the_internet_are_public() {
        for address in ["8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "127.0.0.1",
            "127.255.0.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.9.9",
            "192.168.1.1",
            "100.64.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "::ffff:8.8.8.8",
            "::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn what_is_no_single_host_is_never_connected_to() {
        for address in
            ["0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "ff02::1", "::ffff:0.0.0.0"]
        {
            assert!(!is_host(address.parse().unwrap()), "{address}");
        }
        for address in ["127.0.0.1", "10.0.0.1", "::1", "fe80::1", "8.8.8.8"] {
            assert!(is_host(address.parse().unwrap()), "{address}");
        }
    }
}
