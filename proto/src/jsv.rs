//! How a job submission verifier is named: `[type:][user@]path` (`jsv(1)`).

use std::fmt;
use std::str::FromStr;

/// Where a verifier is, and whose rights it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsvUrl {
    /// The account that runs it. `None` means that of the process that starts it.
    pub user: Option<String>,
    /// The program.
    pub path: String,
}

/// A text names no verifier.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedJsvUrl {
    /// There is one type alone, `script`.
    #[error("type \"{0}\" in JSV URL is invalid")]
    Type(String),
    /// It has no path, or no user in front of its `@`.
    #[error("JSV URL \"{0}\" is incomplete: it has the form [script:][user@]path")]
    Incomplete(String),
}

impl FromStr for JsvUrl {
    type Err = MalformedJsvUrl;

    /// A colon or an `@` behind a slash belongs to the path.
    fn from_str(text: &str) -> Result<Self, MalformedJsvUrl> {
        let before_slash = |text: &str, mark| text.split('/').next().is_some_and(|start| start.contains(mark));
        let rest = match text.split_once(':') {
            Some((kind, rest)) if before_slash(text, ':') => {
                if kind != "script" {
                    return Err(MalformedJsvUrl::Type(kind.to_owned()));
                }
                rest
            }
            Some(_) | None => text,
        };
        let (user, path) = match rest.split_once('@') {
            Some((user, path)) if before_slash(rest, '@') => (Some(user), path),
            Some(_) | None => (None, rest),
        };
        if path.is_empty() || user == Some("") {
            return Err(MalformedJsvUrl::Incomplete(text.to_owned()));
        }
        Ok(Self {
            user: user.map(str::to_owned),
            path: path.to_owned(),
        })
    }
}

impl fmt::Display for JsvUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        f.write_str(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_is_named_by_type_user_and_path() {
        let url = |user: Option<&str>, path: &str| {
            Ok(JsvUrl {
                user: user.map(str::to_owned),
                path: path.to_owned(),
            })
        };
        for (text, expected) in [
            ("/w/j.sh", url(None, "/w/j.sh")),
            ("j.sh", url(None, "j.sh")),
            ("script:/w/j.sh", url(None, "/w/j.sh")),
            ("script:u2@/w/j.sh", url(Some("u2"), "/w/j.sh")),
            ("u2@j.sh", url(Some("u2"), "j.sh")),
            ("/w/a:b@c", url(None, "/w/a:b@c")),
            ("script:/w/a@b", url(None, "/w/a@b")),
            ("foo:/w/j.sh", Err("type \"foo\" in JSV URL is invalid")),
            (":/w/j.sh", Err("type \"\" in JSV URL is invalid")),
            (
                "u2@",
                Err("JSV URL \"u2@\" is incomplete: it has the form [script:][user@]path"),
            ),
            (
                "@/w",
                Err("JSV URL \"@/w\" is incomplete: it has the form [script:][user@]path"),
            ),
            (
                "",
                Err("JSV URL \"\" is incomplete: it has the form [script:][user@]path"),
            ),
        ] {
            let found = text.parse::<JsvUrl>().map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{text}");
        }
    }
}
