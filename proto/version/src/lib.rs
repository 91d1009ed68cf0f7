//! The version of the programs: that of the release, and the commit of an optimised build.

/// The version of the release, such as `0.1.0`.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The commit that the program is built from, with a `+` if files were changed after it. It is
/// empty in a debug build and outside of a checkout of Gridwright.
pub const COMMIT: &str = env!("GRIDWRIGHT_COMMIT");

/// What a program prints for `--version`: its name, the version, and the commit where it is known.
pub fn line(program: &str) -> String {
    with_commit(program, COMMIT)
}

fn with_commit(program: &str, commit: &str) -> String {
    match commit {
        "" => format!("{program} {RELEASE}\n"),
        commit => format!("{program} {RELEASE} (commit {commit})\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_stands_behind_the_version_where_it_is_known() {
        assert_eq!(
            with_commit("gridwright-agent", ""),
            format!("gridwright-agent {RELEASE}\n")
        );
        let known = with_commit("gridwright-agent", "a1b2c3d4e5f6");
        assert_eq!(known, format!("gridwright-agent {RELEASE} (commit a1b2c3d4e5f6)\n"));
    }
}
