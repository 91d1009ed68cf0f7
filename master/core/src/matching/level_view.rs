//! Levels with everything that is known of them, looked up once, because each request of a job is
//! matched against them.

use crate::config::HostSite;
use crate::ledger::sum;
use crate::ledger::timeline::HostUse;
use crate::ledger::{HostBookings, LevelBookings, LevelRef};
use crate::matching::Cluster;
use crate::observe::{HostObservation, Loads};
use proto::amount::Amount;
use proto::host::ExecHost;
use proto::id::{AttributeName, HostName, QueueInstanceName};
use proto::object::value::Assignments;
use proto::queue::QueueInstanceSettings;
use std::sync::Arc;
use std::sync::LazyLock;

/// The name under which hosts report what belongs to the whole cluster.
static GLOBAL: LazyLock<HostName> = LazyLock::new(HostName::global);

/// A level of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct LevelView<'a, 'l> {
    /// The level.
    pub level: LevelRef<'l>,
    /// The execution host object. `None` for a queue instance.
    pub host: Option<&'a ExecHost>,
    /// The settings. `None` for a host.
    pub settings: Option<&'a QueueInstanceSettings>,
    /// Load values of the host.
    pub loads: Option<&'a Loads>,
    /// Contact with the host. `None` for a queue instance and for the cluster.
    pub contact: Option<&'a HostObservation>,
    /// The bookings in each ledger that counts: of placed tasks, and of planned ones.
    pub books: [Option<&'a LevelBookings>; 2],
    /// The use of the host over time, if anybody plans ahead.
    pub tenants: &'a [HostUse],
}

/// A host.
#[derive(Clone, Copy, Debug)]
pub struct HostView<'a, 'l> {
    /// Its level.
    pub view: LevelView<'a, 'l>,
    home: Option<&'a HostSite>,
    books: [Option<&'a HostBookings>; 2],
}

/// A queue instance on its host.
#[derive(Clone, Copy, Debug)]
pub struct InstanceView<'a, 'l> {
    /// Its name.
    pub instance: &'l QueueInstanceName,
    /// Its level.
    pub view: LevelView<'a, 'l>,
    /// Its host.
    pub host: HostView<'a, 'l>,
}

impl<'a> Cluster<'a> {
    /// The level of the cluster.
    pub fn global(&self) -> LevelView<'a, 'static> {
        let host = self.config.sites.get(&*GLOBAL).and_then(|site| site.host.as_deref());
        let loads = self.observations.load.get(&*GLOBAL);
        let books = self.books(|ledger| ledger.level(LevelRef::Global));
        LevelView {
            level: LevelRef::Global,
            host,
            settings: None,
            loads,
            contact: None,
            books,
            tenants: &[],
        }
    }

    /// Looks a host up.
    pub fn host_view<'l>(&self, name: &'l HostName) -> HostView<'a, 'l> {
        let books = self.books(|ledger| ledger.on_host(name));
        let home = self.config.sites.get(name);
        let view = LevelView {
            level: LevelRef::Host(name),
            host: home.and_then(|site| site.host.as_deref()),
            settings: None,
            loads: self.observations.load.get(name),
            contact: self.observations.hosts.get(name),
            books: books.map(|book| book.map(HostBookings::host)),
            tenants: self
                .window
                .filter(|window| !window.is_now())
                .map_or(&[], |window| window.line.tenants(name)),
        };
        HostView { view, home, books }
    }

    /// Looks a queue instance of a host up.
    pub fn site_on<'l>(&self, host: HostView<'a, 'l>, instance: &'l QueueInstanceName) -> InstanceView<'a, 'l> {
        let view = LevelView {
            level: LevelRef::Instance(instance),
            host: None,
            settings: host
                .home
                .and_then(|site| site.settings(&instance.queue))
                .map(Arc::as_ref),
            loads: None,
            contact: None,
            books: host.books.map(|book| book?.instance(&instance.queue)),
            tenants: host.view.tenants,
        };
        InstanceView { instance, view, host }
    }

    /// Looks a queue instance up.
    pub fn site<'l>(&self, instance: &'l QueueInstanceName) -> InstanceView<'a, 'l> {
        self.site_on(self.host_view(&instance.host), instance)
    }

    /// A level and those above it, nearest first.
    pub fn above<'l>(&self, level: impl Into<LevelRef<'l>>) -> Vec<LevelView<'a, 'l>> {
        match level.into() {
            LevelRef::Global => vec![self.global()],
            LevelRef::Host(host) => vec![self.host_view(host).view, self.global()],
            LevelRef::Instance(instance) => self.site(instance).above(self).into(),
        }
    }

    fn books<B>(&self, book: impl Fn(&'a crate::ledger::Ledger) -> Option<B>) -> [Option<B>; 2] {
        let mut ledgers = self.ledgers();
        std::array::from_fn(|_| ledgers.next().and_then(&book))
    }
}

impl<'a, 'l> InstanceView<'a, 'l> {
    /// Its level and those above it, nearest first.
    pub fn above(&self, cluster: &Cluster<'a>) -> [LevelView<'a, 'l>; 3] {
        [self.view, self.host.view, cluster.global()]
    }
}

impl<'a> LevelView<'a, '_> {
    /// `complex_values` of the level.
    pub fn complex_values(&self) -> Option<&'a Assignments> {
        let of_host = self.host.map(|host| &host.complex_values);
        of_host.or_else(|| self.settings.map(|settings| &settings.complex_values))
    }

    /// The configured value of an attribute.
    pub fn value<N: ?Sized>(&self, attribute: &N) -> Option<&'a str>
    where
        AttributeName: PartialEq<N>,
    {
        self.complex_values()?.value(attribute)
    }

    /// Whether nothing is offered there: nothing is configured and nothing reported.
    pub fn is_bare(&self) -> bool {
        self.settings.is_none()
            && self.loads.is_none_or(Loads::is_empty)
            && self.complex_values().is_none_or(|values| values.is_empty())
    }

    /// The present booking of an attribute.
    pub fn booked_now<N: ?Sized>(&self, attribute: &N) -> Amount
    where
        AttributeName: PartialEq<N>,
    {
        sum(self.books.iter().flatten().map(|book| book.booked(attribute)))
    }
}
