//! The proxy to the API server, as kubectl finds it: `proxy-url` of the kubeconfig, or else the environment variables.

use std::env;

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use super::error::ConnectError;

/// The environment variables for proxies, in upper case or else in lower case.
#[derive(Debug, Default)]
pub(super) struct Variables {
    https: Option<String>,
    http: Option<String>,
    /// Hosts, domains and networks that need no proxy.
    exempt: String,
}

impl Variables {
    pub(super) fn read() -> Self {
        let read = |name: &str| {
            let names = [name.to_owned(), name.to_ascii_lowercase()];
            let mut values = names.iter().filter_map(|name| env::var(name).ok());
            values.find(|value| !value.is_empty())
        };
        Self {
            https: read("HTTPS_PROXY"),
            http: read("HTTP_PROXY"),
            exempt: read("NO_PROXY").unwrap_or_default(),
        }
    }

    /// The URL of the proxy for the API server at `target`, and the name of the setting. `named` is the `proxy-url` of the kubeconfig, for
    /// which no host is exempt.
    fn choose(&self, named: Option<&str>, target: &Uri) -> Option<(String, &'static str)> {
        if let Some(url) = named.filter(|url| !url.is_empty()) {
            return Some((url.to_owned(), "proxy-url"));
        }
        let (url, name) = match target.scheme_str() {
            Some("http") => (self.http.as_ref(), "HTTP_PROXY"),
            Some(_) | None => (self.https.as_ref(), "HTTPS_PROXY"),
        };
        let url = url.filter(|_| !self.exempts(target))?;
        Some((url.clone(), name))
    }

    /// True if a host needs no proxy. This machine never does.
    fn exempts(&self, target: &Uri) -> bool {
        let host = target.host().unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        if host == "localhost" || address.is_ok_and(|address| address.is_loopback()) {
            return true;
        }
        let port = target
            .port_u16()
            .unwrap_or_else(|| match target.scheme_str() {
                Some("http") => 80,
                Some(_) | None => 443,
            });
        let entries = self.exempt.split(',').map(str::trim);
        let entries = entries.filter_map(|entry| match entry.rsplit_once(':') {
            // An IPv6 address has more colons, and a port follows a bracket.
            Some((host, number)) if !host.contains(':') || host.ends_with(']') => {
                (number.parse() == Ok(port)).then_some(host)
            }
            Some(_) | None => Some(entry),
        });
        // To the matcher, a domain includes its subdomains.
        let entries = entries.map(|entry| entry.strip_prefix('*').unwrap_or(entry));
        if self.exempt.split(',').any(|entry| entry.trim() == "*") {
            return true;
        }
        let exempt: Vec<_> = entries.collect();
        let matcher = Matcher::builder()
            .all("http://proxy.invalid")
            .no(exempt.join(","))
            .build();
        matcher.intercept(target).is_none()
    }
}

/// Returns the URL of the proxy for an API server.
///
/// # Errors
/// If the setting is not a URL of a proxy.
pub(super) fn find(
    named: Option<&str>,
    target: &Uri,
    variables: &Variables,
) -> Result<Option<Uri>, ConnectError> {
    let Some((text, name)) = variables.choose(named, target) else {
        return Ok(None);
    };
    // As in curl and Go, a host alone is an HTTP proxy.
    let text = if text.contains("://") {
        text
    } else {
        format!("http://{text}")
    };
    let refused = |why: String| ConnectError::new(format!("{name}: {why}"));
    let url: Uri = text
        .parse()
        .map_err(|error: http::uri::InvalidUri| refused(error.to_string()))?;
    at(&url).map_err(refused)?;
    Ok(Some(url))
}

/// The proxy at a URL, with the user and the password in it.
pub(super) fn at(url: &Uri) -> Result<Intercept, String> {
    let Some("http" | "https" | "socks5" | "socks5h") = url.scheme_str() else {
        return Err("the scheme is not http, https or socks5".to_owned());
    };
    let matcher = Matcher::builder().all(url.to_string()).build();
    let any = Uri::from_static("https://kubernetes.invalid");
    let intercept = matcher.intercept(&any);
    intercept.ok_or_else(|| "it has no host".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(exempt: &str) -> Variables {
        Variables {
            https: Some("http://secure:3128".into()),
            http: Some("plain:3128".into()),
            exempt: exempt.into(),
        }
    }

    fn found(named: Option<&str>, target: &str, exempt: &str) -> Option<String> {
        let target = target.parse().expect("it is a URL");
        let found = find(named, &target, &variables(exempt));
        found.expect("it is a proxy").map(|url| url.to_string())
    }

    #[test]
    fn kubeconfig_comes_before_the_environment_and_the_scheme_decides_there() {
        let target = "https://api.example.org:6443";
        assert_eq!(
            found(None, target, "").as_deref(),
            Some("http://secure:3128/")
        );
        let plain = found(None, "http://api.example.org", "");
        assert_eq!(plain.as_deref(), Some("http://plain:3128/"));
        let named = found(Some("socks5://jump:1080"), target, "api.example.org");
        assert_eq!(named.as_deref(), Some("socks5://jump:1080/"));
        assert_eq!(found(Some(""), target, "*"), None);
    }

    #[test]
    fn exempt_hosts_are_reached_without_a_proxy() {
        let exempted = [
            ("api.example.org", "example.org"),
            ("api.example.org", "a.b, .example.org"),
            ("api.example.org", "*.example.org"),
            ("api.example.org:6443", "api.example.org:6443"),
            ("10.1.2.3:6443", "10.0.0.0/8"),
            ("10.1.2.3:6443", "10.1.2.3"),
            ("10.1.2.3:6443", "10.1.2.3:6443"),
            ("[fd00::1]:6443", "fd00::/8"),
            ("api.example.org", "*"),
            ("localhost:6443", ""),
            ("127.0.0.1:6443", ""),
            ("[::1]:6443", ""),
        ];
        let others = [
            ("api.example.org", ""),
            ("api.example.org", "example.com,ample.org"),
            ("api.example.org:6443", "api.example.org:443"),
            ("10.1.2.3", "11.0.0.0/8"),
        ];
        let exempted = exempted.map(|it| (it, true)).into_iter();
        for ((host, exempt), is_exempt) in exempted.chain(others.map(|it| (it, false))) {
            let proxy = found(None, &format!("https://{host}"), exempt);
            assert_eq!(proxy.is_none(), is_exempt, "{host} by {exempt:?}");
        }
    }

    #[test]
    fn proxy_that_is_none_is_refused_by_the_name_of_its_source() {
        let target = Uri::from_static("https://api.example.org");
        let variables = Variables {
            https: Some("ftp://secure".into()),
            ..Variables::default()
        };
        let refused = |named| {
            let found = find(named, &target, &variables);
            found.expect_err("it is no proxy").to_string()
        };
        assert_eq!(
            refused(None),
            "HTTPS_PROXY: the scheme is not http, https or socks5"
        );
        assert!(refused(Some("http://")).starts_with("proxy-url: "));
    }

    #[test]
    fn password_of_a_proxy_is_read() {
        let url = Uri::from_static("http://user:p%40ss@proxy:3128");
        let proxy = at(&url).expect("it is a proxy");
        let said = proxy.basic_auth().expect("it has a password");
        assert_eq!(said, "Basic dXNlcjpwQHNz");
        assert_eq!(proxy.uri().to_string(), "http://proxy:3128/");
    }
}
