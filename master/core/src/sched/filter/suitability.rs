//! Which queue instances a job may have at all, whatever runs there: queue list, kind of job,
//! parallel environments.

use crate::matching::{Cluster, Demand, InstanceView, may_use_pe};
use crate::reason::Obstacle;
use crate::sched::assign::environments;
use proto::id::PeName;

/// A job, with the parallel environments that it may mean.
#[derive(Clone, Debug)]
pub struct Suitability<'a> {
    cluster: &'a Cluster<'a>,
    demand: &'a Demand,
    environments: Vec<&'a PeName>,
}

impl<'a> Suitability<'a> {
    /// Looks the environments up.
    pub fn new(cluster: &'a Cluster<'a>, demand: &'a Demand) -> Suitability<'a> {
        let meant = demand.pe.iter().flat_map(|wanted| environments(cluster, &wanted.name));
        let environments = meant.filter(|pe| may_use_pe(pe, demand)).map(|pe| &pe.name).collect();
        Suitability {
            cluster,
            demand,
            environments,
        }
    }

    /// What the configuration alone says against a queue instance: of a parallel job, under each
    /// environment that the job may mean.
    pub fn unsuitable(&self, site: &InstanceView<'_, '_>) -> Option<Obstacle> {
        let Some(wanted) = &self.demand.pe else {
            return self.cluster.unsuitable(site, self.demand, None);
        };
        let mut why = None;
        for pe in &self.environments {
            why = Some(self.cluster.unsuitable(site, self.demand, Some(pe))?);
        }
        why.or_else(|| {
            Some(Obstacle::NotInPe {
                pe: wanted.name.clone(),
            })
        })
    }
}
