//! Where a module's HTTP actions may connect to.

use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use super::address::{is_host, is_public};

/// Characters of a URL.
pub const URL_MAX_CHARS: usize = 8_192;

/// Where requests may go. Decided for the URL as it is written, and again for each address that its host resolves to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policy {
    /// None is every host.
    pub(super) hosts: Vec<String>,
    /// Beside the public internet.
    pub(super) networks: Vec<Network>,
    pub(super) https_only: bool,
}

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    pub(super) address: IpAddr,
    /// How many of its leading bits count.
    pub(super) bits: u8,
}

impl Network {
    /// An IPv4 address that is written as IPv6 is another address: it is in no range of IPv4.
    fn has(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(known), IpAddr::V4(address)) => {
                let rest = 32_u32.saturating_sub(self.bits.into());
                same(known.to_bits().into(), address.to_bits().into(), rest)
            }
            (IpAddr::V6(known), IpAddr::V6(address)) => {
                let rest = 128_u32.saturating_sub(self.bits.into());
                same(known.to_bits(), address.to_bits(), rest)
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// Whether two addresses are the same but for so many bits at their end.
fn same(one: u128, other: u128, rest: u32) -> bool {
    (one ^ other).checked_shr(rest).unwrap_or(0) == 0
}

/// Why a URL is not asked. Nothing was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Forbidden {
    /// It is no URL that could be asked.
    Malformed(String),
    /// The module does not allow it.
    NotAllowed(String),
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) | Self::NotAllowed(why) => f.write_str(why),
        }
    }
}

impl Policy {
    /// Reads a URL and says whether it may be asked, as far as that can be said without resolving its host.
    pub(crate) fn check(&self, text: &str) -> Result<Url, Forbidden> {
        if text.chars().count() > URL_MAX_CHARS {
            let why = format!("the URL has more than {URL_MAX_CHARS} characters");
            return Err(Forbidden::Malformed(why));
        }
        let url = Url::parse(text)
            .map_err(|error| Forbidden::Malformed(format!("the URL cannot be read: {error}")))?;
        self.check_url(&url).map(|()| url)
    }

    pub(super) fn check_url(&self, url: &Url) -> Result<(), Forbidden> {
        let malformed = |why: &str| Err(Forbidden::Malformed(why.to_owned()));
        let not_allowed = |why: String| Err(Forbidden::NotAllowed(why));
        if !matches!(url.scheme(), "http" | "https") {
            return malformed("the URL must begin with `https://` or `http://`");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return malformed("the URL must not hold a user or a password: use a header");
        }
        let Some(host) = url.host() else { return malformed("the URL names no host") };
        if self.https_only && url.scheme() != "https" {
            return not_allowed("this module allows `https://` only".to_owned());
        }
        let name = host.to_string();
        if !self.hosts.is_empty() && !self.hosts.iter().any(|known| covers(known, &name)) {
            return not_allowed(format!("this module does not allow the host `{name}`"));
        }
        match host {
            Host::Ipv4(address) => self.check_address(IpAddr::V4(address)),
            Host::Ipv6(address) => self.check_address(IpAddr::V6(address)),
            Host::Domain(_) => Ok(()),
        }
    }

    pub(super) fn check_address(&self, address: IpAddr) -> Result<(), Forbidden> {
        let is_known = self.networks.iter().any(|network| network.has(address));
        if is_public(address) || (is_known && is_host(address)) {
            return Ok(());
        }
        let why = format!("{address} is not an address of the public internet");
        Err(Forbidden::NotAllowed(why))
    }
}

/// `api.example.com` is that host; `*.example.com` is every host below it, but not itself.
fn covers(known: &str, host: &str) -> bool {
    let host = host.trim_end_matches('.');
    match known.strip_prefix("*.") {
        Some(above) => host
            .len()
            .checked_sub(above.len() + 1)
            .and_then(|dot| host.split_at_checked(dot))
            .is_some_and(|(below, rest)| {
                !below.is_empty()
                    && rest.strip_prefix('.').is_some_and(|it| it.eq_ignore_ascii_case(above))
            }),
        None => host.eq_ignore_ascii_case(known),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(policy: &Policy, url: &str) -> String {
        policy.check(url).unwrap_err().to_string()
    }

    #[test]
    fn only_urls_that_can_be_asked_are_urls() {
        let any = Policy::default();
        assert!(any.check("https://example.com/a?b=c").is_ok());
        assert!(refused(&any, "ftp://example.com").contains("must begin with"));
        assert!(refused(&any, "https://me:pw@example.com").contains("must not hold a user"));
        assert!(refused(&any, "nonsense").contains("cannot be read"));
        assert!(
            refused(&any, &format!("https://a/{}", "x".repeat(URL_MAX_CHARS)))
                .contains("more than")
        );
        let strict = Policy { https_only: true, ..Policy::default() };
        assert!(refused(&strict, "http://example.com").contains("`https://` only"));
    }

    #[test]
    fn an_address_is_seen_through_however_it_is_written() {
        let any = Policy::default();
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://169.254.169.254/latest",
            "http://0/",
        ] {
            assert!(refused(&any, url).contains("not an address of the public internet"), "{url}");
        }
    }

    #[test]
    fn a_network_of_ours_is_allowed_by_its_range_alone() {
        let of = |address: &str, bits| Network { address: address.parse().unwrap(), bits };
        let networks = vec![of("127.0.0.0", 8), of("fd00:1::", 32)];
        let policy = Policy { networks, ..Policy::default() };
        for url in
            ["http://127.0.0.1/", "http://127.9.9.9/", "http://[fd00:1::7]/", "http://8.8.8.8/"]
        {
            assert!(policy.check(url).is_ok(), "{url}");
        }
        for url in [
            "http://10.0.0.1/",
            "http://[fd00:2::7]/",
            "http://[::ffff:127.0.0.1]/",
            "http://0.0.0.0/",
        ] {
            assert!(policy.check(url).is_err(), "{url}");
        }
        let all = Policy { networks: vec![of("0.0.0.0", 0), of("::", 0)], ..Policy::default() };
        assert!(all.check("http://10.0.0.1/").is_ok());
        assert!(all.check("http://0.0.0.0/").is_err());
        assert!(all.check("http://[ff02::1]/").is_err());
    }

    #[test]
    fn hosts_are_allowed_by_name_or_by_what_is_above_them() {
        let hosts = vec!["api.example.com".to_owned(), "*.shop.test".to_owned()];
        let policy = Policy { hosts, ..Policy::default() };
        for url in
            ["https://api.example.com/x", "https://API.example.com.", "https://a.b.shop.test"]
        {
            assert!(policy.check(url).is_ok(), "{url}");
        }
        for url in [
            "https://example.com",
            "https://shop.test",
            "https://evilshop.test",
            "https://x.api.example.com",
        ] {
            assert!(refused(&policy, url).contains("does not allow the host"), "{url}");
        }
    }
}
