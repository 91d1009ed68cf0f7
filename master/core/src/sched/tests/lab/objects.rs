//! The objects of a cell of text.

use super::Lab;
use crate::event::{Event, StoredObject};
use proto::calendar::Calendar;
use proto::complex::Complex;
use proto::host::ExecHost;
use proto::hostgroup::HostGroup;
use proto::id::HostName;
use proto::object::{Fields, Object, ObjectKind};
use proto::pe::ParallelEnvironment;
use proto::policy::SchedulerConf;
use proto::project::{Project, User};
use proto::queue::ClusterQueue;
use proto::quota::QuotaSet;
use proto::sharetree::{Node, NodeKind, ShareTree};
use proto::userset::UserSet;

impl Lab {
    pub(super) fn object(&mut self, kind: ObjectKind, name: &str, fields: Fields) {
        self.event(Event::ObjectsChanged(vec![StoredObject {
            kind,
            name: name.to_owned(),
            fields: Some(fields),
        }]));
    }

    pub(super) fn complex(&mut self, line: &str) {
        let name = line.split(' ').next();
        let known = self.state().config.complex.to_string();
        let others: Vec<&str> = known.lines().filter(|known| known.split(' ').next() != name).collect();
        let text = format!("{}\n{line}\n", others.join("\n"));
        let complex = Complex::parse(&text).unwrap();
        let mut fields = Fields::new();
        for line in complex.to_string().lines().filter(|line| !line.starts_with('#')) {
            let (name, rest) = line.split_once(' ').unwrap();
            fields.set(name, rest.trim());
        }
        self.object(ObjectKind::ComplexTable, "", fields);
    }

    pub(super) fn exec_host(&mut self, name: &str, complex_values: &str) {
        let mut host = ExecHost::template(HostName::new(name));
        host.complex_values = if complex_values.is_empty() {
            "NONE"
        } else {
            complex_values
        }
        .parse()
        .unwrap();
        self.object(ObjectKind::ExecHost, name, host.to_fields());
    }

    pub(super) fn scale(&mut self, name: &str, factors: &str) {
        let mut host = ExecHost::clone(&self.state().config.exec_hosts[name]);
        host.load_scaling = factors.parse().unwrap();
        self.object(ObjectKind::ExecHost, name, host.to_fields());
    }

    pub(super) fn queue(&mut self, words: &[&str]) {
        let mut queue = ClusterQueue::template(words[0].into());
        queue.hostlist = words[1].parse().unwrap();
        let mut fields = queue.to_fields();
        for (name, value) in words[2..].iter().map(|pair| pair.split_once('=').unwrap()) {
            fields.set(name, value);
        }
        self.object(ObjectKind::Queue, words[0], fields);
    }

    pub(super) fn list(&mut self, name: &str, members: &[&str]) {
        let mut fields = UserSet::template(name).write();
        fields.set("entries", members.join(","));
        self.object(ObjectKind::UserSet, name, fields);
    }

    /// A user, project or department with shares and override tickets.
    pub(super) fn holder(&mut self, kind: &str, words: &[&str]) {
        let (kind, mut fields) = match kind {
            "user" => (ObjectKind::User, User::template(words[0]).write()),
            "project" => (ObjectKind::Project, Project::template(words[0]).write()),
            _ => (ObjectKind::UserSet, UserSet::template(words[0]).write()),
        };
        fields.set("fshare", words[1]);
        fields.set("oticket", words.get(2).copied().unwrap_or("0"));
        if kind == ObjectKind::UserSet {
            fields.set("type", "DEPT");
            fields.set("entries", words[3..].join(","));
        }
        self.object(kind, words[0], fields);
    }

    pub(super) fn tree(&mut self, words: &[&str]) {
        let mut tree = ShareTree::new();
        for (path, shares) in words.iter().map(|word| word.split_once('=').unwrap()) {
            let is_project = path.ends_with('!');
            let mut at = &mut tree.root;
            let (above, name) = path
                .trim_end_matches('!')
                .rsplit_once('/')
                .unwrap_or(("", path.trim_end_matches('!')));
            for step in above.split('/').filter(|step| !step.is_empty()) {
                at = at.children.iter_mut().find(|child| child.name == step).unwrap();
            }
            let kind = if is_project { NodeKind::Project } else { NodeKind::User };
            at.children.push(Node {
                kind,
                ..Node::leaf(name, shares.parse().unwrap())
            });
        }
        self.object(ObjectKind::ShareTree, "", tree.write());
    }

    pub(super) fn group(&mut self, name: &str, members: &[&str]) {
        let members = members.join(" ").parse().unwrap();
        self.object(
            ObjectKind::HostGroup,
            name,
            HostGroup {
                name: name.into(),
                members,
            }
            .to_fields(),
        );
    }

    pub(super) fn calendar(&mut self, words: &[&str]) {
        let mut fields = Calendar::template(words[0].into()).to_fields();
        fields.set("year", words[1]);
        fields.set("week", words[2]);
        self.object(ObjectKind::Calendar, words[0], fields);
    }

    pub(super) fn pe(&mut self, words: &[&str]) {
        let mut fields = ParallelEnvironment::template(words[0].into()).to_fields();
        fields.set("slots", words[1]);
        fields.set("allocation_rule", words[2]);
        for (name, value) in words[3..].iter().map(|pair| pair.split_once('=').unwrap()) {
            fields.set(name, value);
        }
        self.object(ObjectKind::Pe, words[0], fields);
    }

    pub(super) fn quota(&mut self, name: &str, rules: &str) {
        let mut set = QuotaSet::template(name.into());
        set.enabled.0 = true;
        set.rules = rules
            .split('|')
            .filter(|rule| !rule.is_empty())
            .map(|rule| rule.parse().unwrap())
            .collect();
        let fields = (!set.rules.is_empty()).then(|| set.to_fields());
        let kind = ObjectKind::ResourceQuota;
        self.event(Event::ObjectsChanged(vec![StoredObject {
            kind,
            name: name.to_owned(),
            fields,
        }]));
    }

    pub(super) fn conf(&mut self, name: &str, value: &str) {
        let conf: &SchedulerConf = &self.state().config.scheduler;
        let mut fields = conf.to_fields();
        fields.set(name, value);
        self.object(ObjectKind::SchedulerConf, "", fields);
    }
}
