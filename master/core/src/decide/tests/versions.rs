//! Cells of an older version: what they refuse, how they become newer, and which agents they let
//! in.

use super::cell::Cell;
use crate::decide::{CellParts, Turn};
use crate::effect::Effect;
use crate::event::{Actor, Event, StoredObject};
use proto::cell_version::CellVersion;
use proto::conf::ClusterConf;
use proto::object::{Fields, ObjectKind};
use proto::wire::client::{Answer, Command, ObjectAction, ObjectChange, Reply};

/// A cluster configuration with a feature of version 2.
fn memory_limits() -> Fields {
    let mut fields = ClusterConf::template().to_fields();
    fields.set("execd_params", "H_VMEM=memory");
    fields
}

/// All that an answer says, with places, reasons and remedies.
fn said(reply: &Reply) -> String {
    let words = reply.answers.iter().map(|answer| match answer {
        Answer::Done(text) => text.clone(),
        Answer::Warning(said) | Answer::Refused(said) => {
            format!("{}; {}; {}; {}", said.what, said.place, said.why, said.fix)
        }
    });
    words.collect()
}

fn use_memory_limits(cell: &mut Cell) -> String {
    let action = ObjectAction::Replace(memory_limits());
    let change = ObjectChange {
        kind: ObjectKind::ClusterConf,
        name: "global".to_owned(),
        action,
    };
    said(&cell.command("boss", Command::Objects(vec![change])))
}

fn finalize(cell: &mut Cell, version: CellVersion, is_trial: bool) -> String {
    said(&cell.command("boss", Command::Finalize { version, is_trial }))
}

#[test]
fn a_new_cell_has_every_feature_of_its_release() {
    let mut cell = Cell::new();
    assert_eq!(cell.core.state().version, CellVersion::NEWEST);
    assert_eq!(
        use_memory_limits(&mut cell),
        "boss@sub modified \"global\" in configuration list"
    );
    assert!(finalize(&mut cell, CellVersion::NEWEST, false).contains("has version 2 already"));
}

#[test]
fn a_feature_is_refused_before_the_cell_is_finalized_and_allowed_after_it() {
    let mut cell = Cell::of_first_version();
    let before = cell.log.len();
    let refused = use_memory_limits(&mut cell);
    assert!(
        refused.contains("H_VMEM=memory needs version 2 of the cell"),
        "{refused}"
    );
    assert!(refused.contains("gridwright finalize"), "{refused}");
    assert_eq!(cell.log.len(), before, "a refusal changes nothing");

    let asked = finalize(&mut cell, CellVersion::NEWEST, true);
    assert_eq!(asked, "the cell can be brought from version 1 to version 2");
    assert_eq!(cell.log.len(), before, "a question changes nothing");
    let done = finalize(&mut cell, CellVersion::NEWEST, false);
    assert_eq!(done, "boss@sub brought the cell from version 1 to version 2");
    assert_eq!(
        use_memory_limits(&mut cell),
        "boss@sub modified \"global\" in configuration list"
    );
    cell.assert_replay_is_live();
}

#[test]
fn a_version_is_neither_lowered_nor_raised_beyond_this_release() {
    let mut cell = Cell::of_first_version();
    for (version, expected) in [
        (CellVersion::FIRST, "the cell has version 1 already"),
        (
            CellVersion(CellVersion::NEWEST.0 + 1),
            "knows no version of a cell after 2",
        ),
    ] {
        let refused = finalize(&mut cell, version, false);
        assert!(refused.contains(expected), "{refused}");
    }
    let command = Command::Finalize {
        version: CellVersion::NEWEST,
        is_trial: false,
    };
    let refused = said(&cell.command("u1", command));
    assert!(refused.contains("manager"), "{refused}");
    assert_eq!(cell.core.state().version, CellVersion::FIRST);
}

#[test]
#[should_panic(expected = "H_VMEM=memory is recorded in a cell of version 1")]
fn an_event_of_a_later_version_is_never_recorded() {
    let mut cell = Cell::of_first_version();
    let parts = CellParts {
        state: &mut cell.core.state,
        observations: &mut cell.core.observations,
        memory: &mut cell.core.memory,
        site: &cell.core.site,
    };
    let object = StoredObject {
        kind: ObjectKind::ClusterConf,
        name: "global".to_owned(),
        fields: Some(memory_limits()),
    };
    Turn::new(parts, cell.now, None, Actor::Master).record(Event::ObjectsChanged(vec![object]));
}

#[test]
fn agents_of_the_older_release_are_let_in_until_the_cell_is_finalized() {
    let mut cell = Cell::of_first_version();
    cell.agents_know = CellVersion::FIRST;
    cell.connect("h1");
    cell.connect("h2");
    let refused = finalize(&mut cell, CellVersion::NEWEST, true);
    assert!(refused.contains("2 agents are of an older release"), "{refused}");
    assert!(refused.contains("h1, h2"), "{refused}");
    cell.disconnect("h2");
    cell.agents_know = CellVersion::NEWEST;
    cell.connect("h1");
    assert!(finalize(&mut cell, CellVersion::NEWEST, false).contains("brought the cell"));

    cell.agents_know = CellVersion::FIRST;
    cell.connect("h2");
    let why = cell.effects.iter().find_map(|effect| match effect {
        Effect::Disconnect { why, .. } => Some(format!("{}; {}", why.what, why.fix)),
        _ => None,
    });
    let why = why.expect("the agent is turned away");
    assert!(why.contains("of a release before version 2 of the cell"), "{why}");
    assert!(why.contains("release of the master"), "{why}");
}
