//! Lists in the values of options, as `qsub` and verifiers of jobs write them.

use super::HostPath;
use crate::id::HostName;

/// The parts of a comma separated list.
pub fn list(text: &str) -> Vec<String> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The addresses of `-M`, as 8.1.9 reads them: what is left of the first `@` is the user, and what
/// is between it and the second is the host. An address without a user has only a user.
pub fn addresses(text: &str) -> Vec<String> {
    let address = |part: String| {
        let mut words = part.split('@').filter(|word| !word.is_empty());
        let (user, host) = (words.next().unwrap_or_default(), words.next());
        host.map_or_else(|| user.to_owned(), |host| format!("{user}@{host}"))
    };
    let mut addresses: Vec<String> = Vec::new();
    for address in list(text)
        .into_iter()
        .map(address)
        .filter(|address| !address.is_empty())
    {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// Reads a list of paths. `:path` is a path for every host, as is a path without a colon.
pub fn paths(text: &str) -> Vec<HostPath> {
    text.split(',').filter(|part| !part.is_empty()).map(path).collect()
}

fn path(text: &str) -> HostPath {
    match text.split_once(':') {
        Some(("", path)) => HostPath {
            host: None,
            path: path.to_owned(),
        },
        // A colon behind a slash belongs to the path.
        Some((host, path)) if !host.contains('/') => HostPath {
            host: Some(HostName::new(host)),
            path: path.to_owned(),
        },
        Some(_) | None => HostPath {
            host: None,
            path: text.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_name_its_host() {
        let show = |text| {
            paths(text)
                .into_iter()
                .map(|p| (p.host.map(|h| h.to_string()), p.path))
                .collect::<Vec<_>>()
        };
        assert_eq!(show(":/tmp/x"), [(None, "/tmp/x".to_owned())]);
        assert_eq!(show("/a:b"), [(None, "/a:b".to_owned())]);
        assert_eq!(
            show("N1:/x,/y"),
            [(Some("n1".to_owned()), "/x".to_owned()), (None, "/y".to_owned())]
        );
    }
}
