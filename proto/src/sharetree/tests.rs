use super::*;
use proptest::prelude::*;

/// As 8.1.9 prints one.
const RECORDED: &str = "\
id=0
name=Root
type=0
shares=1
childnodes=1,5,6
id=1
name=p1
type=1
shares=50
childnodes=2
id=2
name=grp
type=0
shares=30
childnodes=3,4
id=3
name=u3
type=0
shares=10
childnodes=NONE
id=4
name=default
type=0
shares=7
childnodes=NONE
id=5
name=u1
type=0
shares=1
childnodes=NONE
id=6
name=u2
type=0
shares=2
childnodes=NONE
";

fn node(id: u32, name: &str, children: &str) -> String {
    format!("id={id}\nname={name}\ntype=0\nshares=1\nchildnodes={children}\n")
}

fn refused(text: &str) -> (String, String) {
    let refusals = ShareTree::parse(text).expect_err(text);
    (refusals[0].place.clone(), refusals[0].what.clone())
}

#[test]
fn a_recorded_tree_prints_as_it_was_read_and_survives_its_fields() {
    let tree = ShareTree::parse(RECORDED).unwrap();
    assert_eq!(tree.to_string(), RECORDED);
    assert_eq!(ShareTree::read("", &tree.write()).unwrap(), tree);
    assert_eq!(tree.nodes().len(), 7);
}

#[test]
fn ids_may_come_in_any_order() {
    let text = [
        node(0, "Root", "7,3"),
        node(3, "b", "NONE"),
        node(7, "a", "9"),
        node(9, "c", "NONE"),
    ]
    .concat();
    let tree = ShareTree::parse(&text).unwrap();
    let names: Vec<&str> = tree.nodes().iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["Root", "a", "c", "b"]);
}

#[test]
fn wrong_text_names_line_and_word() {
    let text = |line: &str| node(0, "Root", "NONE").replace("shares=1", line);
    assert_eq!(refused(&text("shares=x")).0, "line 4");
    assert_eq!(
        refused(&text("foo=1")),
        ("line 4".to_owned(), "unknown attribute name \"foo\"".to_owned())
    );
    assert_eq!(refused(&text("")).1, "required attribute \"shares\" is missing");
    assert_eq!(refused(&text("shares=1\nshares=2")).0, "line 5");
    assert_eq!(
        refused(&node(0, "Root", "1")).1,
        "found reference to node 1 but no specification"
    );
    let lost = [node(0, "Root", "NONE"), node(9, "lost", "NONE")].concat();
    assert_eq!(
        refused(&lost),
        ("line 6".to_owned(), "node 9 \"lost\" is below no other node".to_owned())
    );
    let circle = [node(0, "Root", "1"), node(1, "a", "0")].concat();
    assert_eq!(refused(&circle).1, "found reference to node 0 but no specification");
    let twice = [node(0, "Root", "1,2"), node(1, "u1", "NONE"), node(2, "u1", "NONE")].concat();
    assert_eq!(refused(&twice).1, "denied: found node \"u1\" twice under node \"Root\"");
    assert_eq!(refused("").1, "the text holds no node");
}

fn tree() -> impl Strategy<Value = Node> {
    let node = |children: Vec<Node>, shares: u32| {
        let named = children.into_iter().enumerate().map(|(at, child)| Node {
            name: format!("n{at}"),
            ..child
        });
        Node {
            name: "Root".to_owned(),
            kind: NodeKind::User,
            shares,
            children: named.collect(),
        }
    };
    any::<u32>()
        .prop_map(move |shares| node(Vec::new(), shares))
        .prop_recursive(4, 40, 4, move |inner| {
            (prop::collection::vec(inner, 0..4), any::<u32>())
                .prop_map(move |(children, shares)| node(children, shares))
        })
}

proptest! {
    #[test]
    fn print_of_parse_is_identity(root in tree()) {
        let tree = ShareTree { root };
        prop_assert_eq!(&ShareTree::parse(&tree.to_string()).unwrap(), &tree);
        prop_assert_eq!(&ShareTree::read("", &tree.write()).unwrap(), &tree);
    }

    #[test]
    fn no_text_makes_it_panic(text in "([a-z]{0,6}=?[0-9,]{0,4}\n){0,8}") {
        let _ = ShareTree::parse(&text);
    }
}
