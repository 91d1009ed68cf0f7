//! `[[host]:]path[,…]` of `-o`, `-e`, `-i` and `-S`.

use proto::id::HostName;
use proto::job::HostPath;

/// Reads a list of paths. `:path` is a path for every host, as is a path without a colon.
pub fn parse(text: &str) -> Vec<HostPath> {
    text.split(',').filter(|part| !part.is_empty()).map(one).collect()
}

fn one(text: &str) -> HostPath {
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
            parse(text)
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
