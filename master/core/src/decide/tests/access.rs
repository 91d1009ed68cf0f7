//! Access lists, projects, users and checkpointing environments: texts, references, and whom they
//! keep from what.

use super::cell::{Cell, array, job, owner, texts};
use ObjectKind as K;
use proto::checkpoint::Checkpoint;
use proto::job::{JobChanges, JobSpec, Owner, Validation};
use proto::object::{Fields, Object, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::project::{Project, User};
use proto::time::Wall;
use proto::userset::UserSet;
use proto::wire::client::{AttributeEdit, Command, ObjectAction as Do, ObjectChange};

impl Cell {
    /// What `boss` is told of a change.
    fn say(&mut self, kind: K, name: &str, action: Do) -> String {
        self.say_to("boss", kind, name, action)
    }

    fn say_to(&mut self, user: &str, kind: K, name: &str, action: Do) -> String {
        let change = ObjectChange {
            kind,
            name: name.to_owned(),
            action,
        };
        texts(&self.command(user, Command::Objects(vec![change]))).join("|")
    }

    fn make<T: Object>(&mut self, kind: K, name: &str, changes: &[(&str, &str)]) -> String {
        self.say(kind, name, Do::Add(with::<T>(name, changes)))
    }

    fn rattr(&mut self, kind: K, name: &str, attribute: &str, value: &str) -> String {
        let (attribute, value) = (attribute.to_owned(), value.to_owned());
        self.say(
            kind,
            name,
            Do::Attribute {
                edit: AttributeEdit::Replace,
                attribute,
                value,
            },
        )
    }

    fn enlist(&mut self, entry: &str, list: &str) -> String {
        self.say(
            K::UserSet,
            list,
            Do::Enlist {
                entry: entry.to_owned(),
            },
        )
    }

    fn strike(&mut self, entry: &str, list: &str) -> String {
        self.say(
            K::UserSet,
            list,
            Do::Strike {
                entry: entry.to_owned(),
            },
        )
    }

    fn alter(&mut self, number: u32, changes: JobChanges) -> Vec<String> {
        let jobs = super::cell::selection(&[&number.to_string()]);
        texts(&self.command(
            "u1",
            Command::Alter {
                jobs,
                changes: Box::new(changes),
            },
        ))
    }
}

fn with<T: Object>(name: &str, changes: &[(&str, &str)]) -> Fields {
    let mut fields = T::template(name).write();
    changes.iter().for_each(|(key, value)| fields.set(key, *value));
    fields
}

fn job_of(user: &str, project: Option<&str>) -> JobSpec {
    JobSpec {
        owner: owner(user).into(),
        project: project.map(str::to_owned),
        ..job()
    }
}

/// The cell with the lists `team` (u1) and `others` (u2), and projects: two open ones, one of the
/// team, one of everybody else.
fn peopled() -> Cell {
    let mut cell = Cell::ready();
    cell.enlist("u1", "team");
    cell.enlist("u2", "others");
    cell.make::<Project>(K::Project, "p1", &[]);
    cell.make::<Project>(K::Project, "p2", &[]);
    cell.make::<Project>(K::Project, "p3", &[("acl", "team")]);
    cell.make::<Project>(K::Project, "p4", &[("xacl", "team")]);
    cell
}

#[test]
fn entries_of_access_lists_are_told_in_the_words_of_8_1_9() {
    let mut cell = Cell::ready();
    assert_eq!(cell.enlist("u1", "team"), "added \"u1\" to access list \"team\"");
    assert_eq!(cell.enlist("u1", "team"), "\"u1\" is already in access list \"team\"");
    assert_eq!(cell.enlist("@g", "team"), "added \"@g\" to access list \"team\"");
    let all = "all users are assigned to the \"defaultdepartment\" automatically";
    assert_eq!(cell.enlist("u1", "defaultdepartment"), all);
    assert_eq!(cell.strike("u2", "team"), "user \"u2\" is not in access list \"team\"");
    assert_eq!(
        cell.strike("u1", "team"),
        "deleted user \"u1\" from access list \"team\""
    );
    assert_eq!(cell.strike("u1", "nosuch"), "access list \"nosuch\" doesn't exist");
    let said = cell.say_to("op", K::UserSet, "team", Do::Enlist { entry: "u3".to_owned() });
    assert_eq!(said, "added \"u3\" to access list \"team\"");
    let said = cell.say_to("u1", K::UserSet, "team", Do::Enlist { entry: "u1".to_owned() });
    assert_eq!(said, "denied: \"u1\" must be operator for this operation");
    assert_eq!(
        cell.say_to("op", K::Project, "p", Do::Delete),
        "denied: \"op\" must be manager for this operation"
    );
    cell.assert_replay_is_live();
}

#[test]
fn changes_of_people_and_projects_are_told_in_the_words_of_8_1_9() {
    let mut cell = Cell::ready();
    let set = || with::<UserSet>("s", &[("type", "DEPT"), ("entries", "u1")]);
    let project = || with::<Project>("p", &[]);
    let user = || with::<User>("u", &[]);
    for (kind, name, action, expected) in [
        (K::UserSet, "s", Do::Add(set()), "boss@sub added \"s\" to userset list"),
        (K::UserSet, "s", Do::Add(set()), "userset \"s\" already exists"),
        (
            K::UserSet,
            "s",
            Do::Replace(set()),
            "boss@sub modified \"s\" in userset list",
        ),
        (K::UserSet, "s", Do::Delete, "boss@sub removed \"s\" from userset list"),
        (K::UserSet, "s", Do::Delete, "denied: userset \"s\" does not exist"),
        (
            K::Project,
            "p",
            Do::Add(project()),
            "boss@sub added \"p\" to project list",
        ),
        (K::Project, "p", Do::Add(project()), "project \"p\" already exists"),
        (
            K::Project,
            "p",
            Do::Replace(project()),
            "boss@sub modified \"p\" in project list",
        ),
        (K::Project, "p", Do::Delete, "boss@sub removed \"p\" from project list"),
        (K::Project, "p", Do::Delete, "denied: project \"p\" does not exist"),
        (K::Project, "p", Do::Replace(project()), "p is not known as a project"),
        (K::User, "u", Do::Add(user()), "boss@sub added \"u\" to user list"),
        (K::User, "u", Do::Delete, "boss@sub removed \"u\" from user list"),
        (K::User, "u", Do::Replace(user()), "u is not known as a user"),
    ] {
        assert_eq!(cell.say(kind, name, action), expected);
    }
    cell.assert_replay_is_live();
}

#[test]
fn changes_of_checkpoints_are_told_in_the_words_of_8_1_9() {
    let mut cell = Cell::ready();
    let ckpt = || with::<Checkpoint>("c", &[]);
    for (kind, name, action, expected) in [
        (
            K::Checkpoint,
            "c",
            Do::Add(ckpt()),
            "boss@sub added \"c\" to checkpoint interface list",
        ),
        (
            K::Checkpoint,
            "c",
            Do::Add(ckpt()),
            "checkpoint interface \"c\" already exists",
        ),
        (
            K::Checkpoint,
            "c",
            Do::Delete,
            "boss@sub removed \"c\" from checkpointing environment list",
        ),
        (
            K::Checkpoint,
            "c",
            Do::Delete,
            "denied: checkpointing environment \"c\" does not exist",
        ),
        (
            K::Checkpoint,
            "c",
            Do::Replace(ckpt()),
            "denied: checkpoint interface \"c\" does not exist",
        ),
    ] {
        assert_eq!(cell.say(kind, name, action), expected);
    }
    cell.assert_replay_is_live();
}

#[test]
fn what_is_named_must_exist() {
    let mut cell = peopled();
    cell.make::<ParallelEnvironment>(K::Pe, "smp", &[]);
    let unknown = "Userset \"nosuch\" does not exist";
    let project = |what: &str| format!("denied: project \"nosuch\" referenced in projects of {what} does not exist");
    assert_eq!(cell.rattr(K::Queue, "all.q", "user_lists", "nosuch"), unknown);
    assert_eq!(
        cell.rattr(K::Queue, "all.q", "xuser_lists", "NONE,[h1=nosuch]"),
        unknown
    );
    assert_eq!(cell.rattr(K::ExecHost, "h1", "user_lists", "nosuch"), unknown);
    assert_eq!(cell.rattr(K::Pe, "smp", "user_lists", "nosuch"), unknown);
    assert_eq!(cell.rattr(K::ClusterConf, "global", "xuser_lists", "nosuch"), unknown);
    assert_eq!(cell.make::<Project>(K::Project, "p", &[("acl", "nosuch")]), unknown);
    assert_eq!(
        cell.rattr(K::Queue, "all.q", "projects", "nosuch"),
        "Project \"nosuch\" does not exist"
    );
    assert_eq!(
        cell.rattr(K::ExecHost, "h1", "projects", "nosuch"),
        project("exechost \"h1\"")
    );
    assert_eq!(
        cell.rattr(K::ClusterConf, "global", "projects", "nosuch"),
        project("configuration \"global\"")
    );
    let said = cell.make::<User>(K::User, "u1", &[("default_project", "nosuch")]);
    assert_eq!(said, "denied: project \"nosuch\" does not exist");
    assert_eq!(
        cell.rattr(K::Queue, "all.q", "ckpt_list", "nosuch"),
        "Ckpt \"nosuch\" does not exist"
    );
    let said = cell.make::<Project>(K::Project, "p", &[("acl", "team"), ("xacl", "team")]);
    assert_eq!(
        said,
        "denied: multiple occurrences of userset \"team\" in project \"p\""
    );
    let said = cell.make::<Project>(K::Project, "default", &[]);
    assert_eq!(said, "denied: not allowed add a project with name \"default\"");
}

#[test]
fn what_is_named_stays() {
    let mut cell = peopled();
    cell.make::<ParallelEnvironment>(K::Pe, "smp", &[]);
    cell.make::<Checkpoint>(K::Checkpoint, "c1", &[]);
    let stays = |what: &str| format!("denied: userset \"team\" is still referenced in {what}");
    assert_eq!(
        cell.say(K::UserSet, "team", Do::Delete),
        stays("user list of project \"p3\"")
    );
    cell.say(K::Project, "p3", Do::Delete);
    cell.say(K::Project, "p4", Do::Delete);
    for (kind, name, key, what) in [
        (K::Queue, "all.q", "user_lists", "user list of queue \"all.q\""),
        (K::Queue, "all.q", "xuser_lists", "xuser list of queue \"all.q\""),
        (K::ExecHost, "h1", "user_lists", "user list of exechost \"h1\""),
        (K::Pe, "smp", "user_lists", "user list of parallel environment \"smp\""),
        (
            K::ClusterConf,
            "global",
            "user_lists",
            "user list of configuration \"global\"",
        ),
    ] {
        cell.rattr(kind, name, key, "team");
        assert_eq!(cell.say(K::UserSet, "team", Do::Delete), stays(what));
        cell.rattr(kind, name, key, "NONE");
    }
    cell.rattr(K::Queue, "all.q", "projects", "NONE,[h1=p1]");
    let stays = "denied: project \"p1\" is still referenced in projects of queue \"all.q\"";
    assert_eq!(cell.say(K::Project, "p1", Do::Delete), stays);
    cell.make::<User>(K::User, "u1", &[("default_project", "p2")]);
    let stays = "project \"p2\" is still referenced by user \"u1\"";
    assert_eq!(cell.say(K::Project, "p2", Do::Delete), stays);
    cell.rattr(K::Queue, "all.q", "ckpt_list", "c1");
    let stays = "denied: Ckpt \"c1\" is still referenced in queue \"all.q\".";
    assert_eq!(cell.say(K::Checkpoint, "c1", Do::Delete), stays);
}

#[test]
fn submissions_are_refused_in_the_words_of_8_1_9() {
    let mut cell = peopled();
    let refused = |cell: &mut Cell, spec: JobSpec| cell.try_submit(spec).expect_err("it is refused");
    let no = |why: &str| format!("job rejected: {why}");
    assert_eq!(
        refused(&mut cell, job_of("u1", Some("x"))),
        no("the requested project \"x\" does not exist")
    );
    assert_eq!(
        refused(&mut cell, job_of("u2", Some("p3"))),
        no("no access to project \"p3\" for user \"u2\"")
    );
    assert_eq!(
        refused(&mut cell, job_of("u1", Some("p4"))),
        no("no access to project \"p4\" for user \"u1\"")
    );
    assert!(cell.try_submit(job_of("u1", Some("p3"))).is_ok() && cell.try_submit(job_of("u2", Some("p4"))).is_ok());
    cell.set_cluster(&[("enforce_project", "true")]);
    assert_eq!(refused(&mut cell, job_of("u1", None)), no("no project assigned to job"));
    cell.set_cluster(&[("projects", "p1")]);
    assert_eq!(
        refused(&mut cell, job_of("u1", Some("p2"))),
        no("project \"p2\" is not allowed to submit jobs")
    );
    let none = "no project was supplied and only certain projects are allowed to submit jobs";
    assert_eq!(refused(&mut cell, job_of("u1", None)), no(none));
    cell.set_cluster(&[("xprojects", "p2")]);
    assert_eq!(
        refused(&mut cell, job_of("u1", Some("p2"))),
        no("project \"p2\" is not allowed to submit jobs")
    );
    cell.set_cluster(&[("user_lists", "team")]);
    assert_eq!(
        refused(&mut cell, job_of("u2", None)),
        no("u2@sub is not allowed to submit jobs")
    );
    cell.set_cluster(&[("xuser_lists", "others")]);
    assert_eq!(
        refused(&mut cell, job_of("u2", None)),
        no("u2@sub is not allowed to submit jobs")
    );
    assert!(cell.try_submit(job_of("u1", None)).is_ok());
    cell.set_cluster(&[("enforce_user", "true")]);
    assert_eq!(
        refused(&mut cell, job_of("u9", None)),
        no("the user \"u9\" does not exist")
    );
    cell.set_cluster(&[]);
    let late = || JobSpec {
        deadline: Some(Wall::from_seconds(1_900_000_000)),
        ..job()
    };
    assert_eq!(
        refused(&mut cell, late()),
        no("the user \"u1\" is not a deadline initiation user")
    );
    cell.enlist("u1", "deadlineusers");
    assert!(cell.try_submit(late()).is_ok());
}

#[test]
fn qalter_asks_about_a_project_only_when_it_changes() {
    let mut cell = peopled();
    let number = cell.submit(job_of("u1", Some("p3")));
    cell.strike("u1", "team");
    let priority = JobChanges {
        priority: Some(-5),
        ..JobChanges::default()
    };
    let said = cell.alter(number, priority);
    assert!(!said[0].contains("rejected"), "the project is left alone: {said:?}");
    cell.enlist("u1", "team");
    let project = |name: &str| JobChanges {
        project: Some(name.to_owned()),
        ..JobChanges::default()
    };
    assert_eq!(
        cell.alter(number, project("p4")),
        ["job rejected: no access to project \"p4\" for user \"u1\""]
    );
    assert_eq!(
        cell.alter(number, project("p2")),
        [format!("modified project of job {number}")]
    );
    assert_eq!(cell.job(number).spec.project.as_deref(), Some("p2"));
}

/// A job by its user and project, and why it is kept away, if it is.
type Applicant<'a> = (&'a str, Option<&'a str>, Option<&'a str>);

/// For each job, whether h1 takes it where a list is set.
fn check_lists(rows: &[(K, &str, &str, &str, &[Applicant<'_>])]) {
    for &(kind, name, key, value, cases) in rows {
        let mut cell = peopled();
        assert!(cell.rattr(kind, name, key, value).contains("modified"), "{key} {value}");
        for &(user, project, expected) in cases {
            let number = cell.submit(job_of(user, project));
            let why = cell.order(number, 1, "h1").err();
            assert_eq!(
                why.is_some(),
                expected.is_some(),
                "{key} {value} {user} {project:?}: {why:?}"
            );
            if let Some(expected) = expected {
                assert!(why.as_deref().unwrap_or_default().contains(expected), "{why:?}");
            }
        }
    }
}

#[test]
fn lists_of_queues_keep_jobs_away() {
    let user = "has no permission for cluster queue \"all.q\"";
    let none = "(no project) does not have the correct project to run in cluster queue \"all.q\"";
    check_lists(&[
        (
            K::Queue,
            "all.q",
            "user_lists",
            "team",
            &[("u1", None, None), ("u2", None, Some(user))],
        ),
        (
            K::Queue,
            "all.q",
            "xuser_lists",
            "others",
            &[("u1", None, None), ("u2", None, Some(user))],
        ),
        (K::Queue, "all.q", "user_lists", "NONE,[h2=team]", &[("u2", None, None)]),
        (
            K::Queue,
            "all.q",
            "user_lists",
            "team,[h1=others]",
            &[
                ("u1", None, Some("has no permission for queue \"all.q@h1\"")),
                ("u2", None, None),
            ],
        ),
        (
            K::Queue,
            "all.q",
            "projects",
            "p1",
            &[("u1", Some("p1"), None), ("u1", None, Some(none))],
        ),
    ]);
}

#[test]
fn lists_of_hosts_and_the_cluster_keep_jobs_away() {
    check_lists(&[
        (
            K::ExecHost,
            "h1",
            "user_lists",
            "team others",
            &[
                ("u1", None, None),
                ("u2", None, None),
                ("u3", None, Some("has no permission for host \"h1\"")),
            ],
        ),
        (
            K::ExecHost,
            "global",
            "xuser_lists",
            "team",
            &[
                ("u1", None, Some("has no permission for host \"global\"")),
                ("u3", None, None),
            ],
        ),
        (
            K::ExecHost,
            "h1",
            "projects",
            "p1",
            &[
                (
                    "u1",
                    Some("p2"),
                    Some("(project p2) does not have the correct project to run in host \"h1\""),
                ),
                (
                    "u1",
                    None,
                    Some("(no project) does not have the correct project to run in host \"h1\""),
                ),
            ],
        ),
        (
            K::ExecHost,
            "h1",
            "xprojects",
            "p1",
            &[
                ("u1", None, None),
                ("u1", Some("p2"), None),
                (
                    "u1",
                    Some("p1"),
                    Some("(project p1) is not allowed to run in host \"h1\" based on the excluded project list"),
                ),
            ],
        ),
    ]);
}

#[test]
fn an_excluding_list_wins_over_an_admitting_one() {
    let mut cell = peopled();
    cell.rattr(K::Queue, "all.q", "user_lists", "team others");
    cell.rattr(K::Queue, "all.q", "xuser_lists", "others");
    let (first, second) = (cell.submit(job_of("u1", None)), cell.submit(job_of("u2", None)));
    assert!(cell.order(first, 1, "h1").is_ok() && cell.order(second, 1, "h1").is_err());
}

#[test]
fn groups_count_as_they_were_at_submission() {
    let mut cell = peopled();
    cell.enlist("@staff", "team");
    cell.enlist("@wheel", "team");
    cell.rattr(K::Queue, "all.q", "user_lists", "team");
    let admits = |cell: &Cell, owner: Owner| !cell.core.state().config.access.lists_of(&owner).is_empty();
    let plain = owner("u9");
    assert!(!admits(&cell, plain.clone()));
    assert!(admits(
        &cell,
        Owner {
            group: "staff".to_owned(),
            ..plain.clone()
        }
    ));
    assert!(admits(
        &cell,
        Owner {
            groups: vec!["wheel".to_owned()],
            ..plain
        }
    ));
}

#[test]
fn who_leaves_a_list_keeps_the_tasks_that_run() {
    let mut cell = peopled();
    cell.rattr(K::Queue, "all.q", "user_lists", "team");
    let number = cell.submit(array("1-2:1"));
    let key = cell.run(number, 1, "h1");
    cell.strike("u1", "team");
    assert!(cell.order(number, 2, "h1").is_err(), "no other task starts");
    assert!(cell.task(number, 1).place.placement().is_some());
    cell.exit(key, "h1", 0);
    assert_eq!(cell.records().len(), 1);
}

#[test]
fn a_job_that_is_admitted_nowhere_is_told_so() {
    let mut cell = peopled();
    cell.rattr(K::Queue, "all.q", "user_lists", "team");
    let warning = "warning: u2's job is not allowed to run in any queue";
    let answers = cell.command("u2", Command::Submit(Box::new(job_of("u2", None))));
    assert_eq!(texts(&answers), [warning]);
    assert!(answers.data.is_some());
    let verify = JobSpec {
        validation: Validation::Verify,
        ..job_of("u2", None)
    };
    let said = cell.try_submit(verify).unwrap_err();
    let reason = "has no permission for cluster queue \"all.q\"\nverification: no suitable queues";
    assert!(
        said.starts_with(&format!("{warning}\nJob ")) && said.ends_with(reason),
        "{said}"
    );
    let refuse = JobSpec {
        validation: Validation::Refuse,
        ..job_of("u2", None)
    };
    assert_eq!(
        cell.try_submit(refuse).unwrap_err(),
        format!("{warning}\nerror: no suitable queues")
    );
}

#[test]
fn a_job_of_a_cell_without_queues_is_told_so() {
    let mut cell = peopled();
    cell.say(K::Queue, "all.q", Do::Delete);
    let answers = cell.command("u2", Command::Submit(Box::new(job_of("u2", None))));
    assert_eq!(
        texts(&answers),
        ["warning: u2's job is not allowed to run in any queue"]
    );
    assert!(answers.data.is_some());
}

#[test]
fn users_come_into_being_and_expire() {
    let mut cell = peopled();
    cell.set_cluster(&[
        ("auto_user_delete_time", "100"),
        ("auto_user_fshare", "7"),
        ("auto_user_default_project", "p2"),
    ]);
    let number = cell.submit(job_of("u2", None));
    assert_eq!(cell.job(number).spec.project.as_deref(), Some("p2"));
    let user = cell.core.state().config.users["u2"].clone();
    assert_eq!(
        (user.fshare, i64::from(user.delete_time)),
        (7, cell.now.wall.seconds() + 100)
    );
    cell.pass(101_000);
    assert!(cell.core.state().config.users.contains_key("u2"), "the user has a job");
    cell.qdel("u2", &[&number.to_string()]);
    cell.pass(101_000);
    assert!(!cell.core.state().config.users.contains_key("u2"));
    cell.assert_replay_is_live();
}

#[test]
fn departments_are_those_of_the_owner_or_the_default() {
    let mut cell = Cell::ready();
    let department = |cell: &Cell, owner: &Owner| cell.core.state().config.access.department_of(owner).to_owned();
    assert_eq!(department(&cell, &owner("u1")), "defaultdepartment");
    cell.make::<UserSet>(K::UserSet, "d2", &[("type", "DEPT"), ("entries", "u1")]);
    cell.make::<UserSet>(K::UserSet, "d1", &[("type", "ACL DEPT"), ("entries", "u1,@users")]);
    cell.make::<UserSet>(K::UserSet, "a0", &[("entries", "u1")]);
    assert_eq!(department(&cell, &owner("u1")), "d1");
    assert_eq!(department(&cell, &owner("u2")), "d1", "by its group");
    let number = cell.submit(job());
    let key = cell.run(number, 1, "h1");
    cell.exit(key, "h1", 0);
    assert_eq!(cell.records()[0].department, "d1");
}

#[test]
fn the_share_tree_names_what_exists_and_keeps_it() {
    let mut cell = peopled();
    cell.make::<User>(K::User, "u1", &[]);
    cell.make::<User>(K::User, "u2", &[]);
    let tree = |nodes: &[(&str, u8, &str)]| -> Fields {
        let fields = nodes.iter().enumerate();
        fields
            .map(|(id, (name, kind, below))| (id.to_string(), format!("{name} {kind} 10 {below}")))
            .collect()
    };
    let add = |cell: &mut Cell, nodes: &[(&str, u8, &str)]| cell.say(K::ShareTree, "", Do::Add(tree(nodes)));
    assert_eq!(cell.say(K::ShareTree, "", Do::Delete), "sharetree does not exist");
    let unknown = |name: &str| format!("denied: share tree contains reference to unknown user/project \"{name}\"");
    assert_eq!(add(&mut cell, &[("Root", 0, "1"), ("u9", 0, "NONE")]), unknown("u9"));
    assert_eq!(add(&mut cell, &[("Root", 0, "1"), ("p9", 1, "NONE")]), unknown("p9"));
    let twice = [
        ("Root", 0, "1,2"),
        ("u1", 0, "NONE"),
        ("group", 0, "3"),
        ("u1", 0, "NONE"),
    ];
    assert_eq!(add(&mut cell, &twice), "found user \"u1\" twice in share tree");
    let nested = [("Root", 0, "1"), ("p1", 1, "2"), ("p2", 1, "NONE")];
    assert_eq!(add(&mut cell, &nested), "found sub-project \"p2\" in project \"p1\"");
    let good = [
        ("Root", 0, "1,4"),
        ("p1", 1, "2,3"),
        ("u1", 0, "NONE"),
        ("default", 0, "NONE"),
        ("group", 0, "5"),
        ("u1", 0, "NONE"),
    ];
    assert_eq!(add(&mut cell, &good), "changed sharetree");
    assert_eq!(add(&mut cell, &good), "changed sharetree");
    assert_eq!(
        cell.say(K::ShareTree, "", Do::Replace(tree(&good))),
        "modified sharetree"
    );
    let stays = |what: &str| format!("denied: may not remove {what} still referenced in share tree");
    assert_eq!(cell.say(K::Project, "p1", Do::Delete), stays("project \"p1\""));
    assert_eq!(cell.say(K::User, "u1", Do::Delete), stays("user \"u1\""));
    assert_eq!(
        cell.say(K::User, "u2", Do::Delete),
        "boss@sub removed \"u2\" from user list"
    );
    assert_eq!(
        cell.say(K::ShareTree, "", Do::Delete),
        "boss@sub removed sharetree list"
    );
    cell.assert_replay_is_live();
}
