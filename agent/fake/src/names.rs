//! Names: their syntax, and the names that the server generates.

use crate::random::Random;

/// No vowels and no look-alikes, so that no words and no ambiguities arise (spec 6.3).
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// How much of `generateName` is kept: with the suffix, the name has at most 63 characters.
const BASE_MAX: usize = 58;
const SUFFIX: usize = 5;
const SUBDOMAIN_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// Generates a name as the API server does (spec 6.3).
pub(crate) fn generate(random: &mut Random, base: &str) -> String {
    let mut name = base[..base.floor_char_boundary(BASE_MAX)].to_owned();
    for _ in 0..SUFFIX {
        let letter = random.below(ALPHABET.len() as u64);
        name.push(char::from(ALPHABET[letter as usize]));
    }
    name
}

/// Generates a UID in the form of a random UUID.
pub(crate) fn uid(random: &mut Random) -> String {
    let (high, low) = (random.next(), random.next());
    let (a, b, c) = (high >> 32, (high >> 16) & 0xFFFF, high & 0x0FFF);
    let (d, e) = ((low >> 48) & 0x3FFF | 0x8000, low & 0xFFFF_FFFF_FFFF);
    format!("{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
}

pub(crate) fn is_subdomain(name: &str) -> bool {
    name.len() <= SUBDOMAIN_MAX && name.split('.').all(is_subdomain_part)
}

pub(crate) fn is_dns_label(name: &str) -> bool {
    name.len() <= LABEL_MAX && is_subdomain_part(name)
}

/// The key of a label is a name, or a subdomain, a slash and a name (spec 2).
pub(crate) fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_qualified_part(name),
        None => is_qualified_part(key),
    }
}

/// See spec 2.
pub(crate) fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_qualified_part(value)
}

fn is_subdomain_part(part: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    has_shape(part, alphanumeric, |byte| byte == b'-')
}

fn is_qualified_part(name: &str) -> bool {
    let inner = |byte: u8| matches!(byte, b'-' | b'_' | b'.');
    name.len() <= LABEL_MAX && has_shape(name, |byte| byte.is_ascii_alphanumeric(), inner)
}

/// True if both ends are `plain` and everything between is `plain` or `inner`.
fn has_shape(text: &str, plain: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter().all(|end| end.is_some_and(|byte| plain(*byte)))
        && bytes.iter().all(|byte| plain(*byte) || inner(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_base_loses_its_tail_and_is_cut_between_characters() {
        for (base, start) in [
            (format!("{}-", "a".repeat(60)), "a".repeat(58)),
            ("ä".repeat(40), "ä".repeat(29)),
        ] {
            let name = generate(&mut Random::new(1), &base);
            assert_eq!(name.len(), 63);
            assert!(name.starts_with(&start) && !name.contains('-'));
        }
    }

    #[test]
    fn uid_is_a_version_4_uuid_and_comes_from_the_seed() {
        let uid_of = |seed| uid(&mut Random::new(seed));
        assert_eq!(uid_of(7), uid_of(7));
        assert_ne!(uid_of(7), uid_of(8));
        assert_eq!(uid_of(7).len(), 36);
        assert_eq!(uid_of(7).as_bytes()[14], b'4');
    }

    #[test]
    fn syntax_is_that_of_kubernetes() {
        for good in ["a", "web-1", "a.b-c.d", &"a".repeat(253)] {
            assert!(is_subdomain(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a..b", "a_b", &"a".repeat(254)] {
            assert!(!is_subdomain(bad), "{bad}");
        }
        for good in ["app", "App_1.x", "example.com/app"] {
            assert!(is_label_key(good), "{good}");
        }
        for bad in ["", "/app", "a/b/c", "a b", &"a".repeat(64)] {
            assert!(!is_label_key(bad), "{bad}");
        }
        assert!(is_label_value("") && is_label_value("v1.2_x") && !is_label_value("-x"));
        assert!(is_dns_label("default") && !is_dns_label("a.b"));
    }
}
