//! Join tokens: made, listed, revoked.

use gridwright_tests::cell::Cell;

#[test]
fn tokens_are_listed_until_they_are_revoked() {
    let cell = Cell::up();
    assert_eq!(cell.admin(&["token", "list"]).ok().out, "");
    let first = cell.admin(&["token"]).ok().out;
    cell.admin(&["token", "create", "--valid", "7d", "--uses", "3", "--hosts", "node*"])
        .ok();
    let listed = cell.admin(&["token", "list"]).ok().out;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(
        listed.lines().last().unwrap().ends_with("node*") && !listed.contains(first.trim()),
        "{listed}"
    );
    cell.admin(&["token", "revoke", first.trim()]).ok();
    let listed = cell.admin(&["token", "list"]).ok().out;
    let id = listed
        .lines()
        .last()
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .to_owned();
    let json: serde_json::Value =
        serde_json::from_str(&cell.admin(&["token", "list", "-fmt", "json"]).ok().out).unwrap();
    assert_eq!(
        (
            json["tokens"][0]["id"].as_str(),
            json["tokens"][0]["uses_left"].as_u64()
        ),
        (Some(id.as_str()), Some(3))
    );
    cell.admin(&["token", "revoke", &id]).ok();
    assert_eq!(cell.admin(&["token", "list"]).ok().out, "");
    cell.admin(&["token", "revoke", &id])
        .refused(&["there is no token", "fix:"]);
}
