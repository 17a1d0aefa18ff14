//! The syntax of names, and the UIDs that the server gives.

use crate::random::Random;

const SUBDOMAIN_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// Generates a UID in the form of a random UUID.
pub(crate) fn uid(random: &mut Random) -> String {
    let (high, low) = (random.next(), random.next());
    let (a, b, c) = (high >> 32, (high >> 16) & 0xFFFF, high & 0x0FFF);
    let (d, e) = ((low >> 48) & 0x3FFF | 0x8000, low & 0xFFFF_FFFF_FFFF);
    format!("{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
}

/// True if this is a DNS label in lower case, as the names of namespaces are.
pub(crate) fn is_label(name: &str) -> bool {
    is_subdomain(name) && name.len() <= LABEL_MAX && !name.contains('.')
}

/// True if this is a DNS subdomain in lower case, as the names of all other kinds are here.
pub(crate) fn is_subdomain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_part = |part: &str| {
        let ends = [part.bytes().next(), part.bytes().next_back()];
        ends.into_iter().all(|end| end.is_some_and(plain))
            && part.bytes().all(|byte| plain(byte) || byte == b'-')
    };
    name.len() <= SUBDOMAIN_MAX && name.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_subdomains() {
        for good in ["a", "web-1", "a.b-c.d", &"a".repeat(253)] {
            assert!(is_subdomain(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a..b", "a_b", &"a".repeat(254)] {
            assert!(!is_subdomain(bad), "{bad}");
        }
        assert!(is_label("a-b") && is_label(&"a".repeat(63)));
        assert!(!is_label("a.b") && !is_label(&"a".repeat(64)));
    }
}
