//! What a change would make of a text: the lines that go and the lines that come. Pure.

/// Whether two lines say the same.
pub type LineEquality = fn(&str, &str) -> bool;

/// Letter by letter.
pub fn is_equal(one: &str, other: &str) -> bool {
    one == other
}

/// However many blanks are between their words. Comments, such as the head of a table, say the
/// same.
pub fn has_same_words(one: &str, other: &str) -> bool {
    let are_comments = one.starts_with('#') && other.starts_with('#');
    are_comments || one.split_ascii_whitespace().eq(other.split_ascii_whitespace())
}

/// Lines that are in `before` alone with `-`, those in `after` alone with `+`, in the order of the
/// texts; what both have is left out.
pub fn lines(before: &str, after: &str, is_same: LineEquality) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let common = common_lengths(&old, &new, is_same);
    let (mut at, mut to) = (0, 0);
    let mut text = String::new();
    while at < old.len() || to < new.len() {
        match (old.get(at), new.get(to)) {
            (Some(gone), Some(come)) if is_same(gone, come) => (at, to) = (at + 1, to + 1),
            (Some(gone), _) if to == new.len() || common[at + 1][to] >= common[at][to + 1] => {
                text += &format!("-{gone}\n");
                at += 1;
            }
            (_, Some(come)) => {
                text += &format!("+{come}\n");
                to += 1;
            }
            (_, None) => unreachable!("what is left of the old text goes first"),
        }
    }
    text
}

/// The length of the longest common sequence of what follows each pair of lines.
fn common_lengths(old: &[&str], new: &[&str], is_same: LineEquality) -> Vec<Vec<u32>> {
    let mut lengths = vec![vec![0; new.len() + 1]; old.len() + 1];
    for at in (0..old.len()).rev() {
        for to in (0..new.len()).rev() {
            lengths[at][to] = match is_same(old[at], new[to]) {
                true => lengths[at + 1][to + 1] + 1,
                false => lengths[at + 1][to].max(lengths[at][to + 1]),
            };
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::{has_same_words, is_equal, lines};

    #[test]
    fn what_goes_and_what_comes_is_told_in_order_and_the_rest_is_not() {
        let check =
            |before, after, expected| assert_eq!(lines(before, after, is_equal), expected, "{before:?} {after:?}");
        check("a\nb\n", "a\nb\n", "");
        check("", "a\nb\n", "+a\n+b\n");
        check("a\n", "", "-a\n");
        check("a 1\nb 2\nc 3\n", "a 1\nb 5\nc 3\n", "-b 2\n+b 5\n");
        check("a\nb\nc\n", "b\nc\nd\n", "-a\n+d\n");
        check("x\na\nb\n", "a\ny\nb\n", "-x\n+y\n");
    }

    #[test]
    fn columns_that_move_are_no_change() {
        let (before, after) = (
            "#name s\n#------\nlic  l\n",
            "#name    s\n#---------\nlic      l\nlonger   x\n",
        );
        assert_eq!(lines(before, after, has_same_words), "+longer   x\n");
    }
}
