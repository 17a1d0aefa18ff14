//! The flags of the preferences that owners of ReplicaSets state by annotations.

use std::{collections::BTreeSet, str::FromStr};

use agent_core::{
    asking::CostKind,
    preferences::{self, DefaultPreference, Preference, PreferencePolicy},
};
use clap::Args;
use service::{Fault, transport::Endpoint};

/// The preferences that the agent follows.
#[derive(Clone, Debug, Args)]
pub struct PreferenceArgs {
    /// The annotations of ReplicaSets that the agent follows beyond Kubernetes' rules, separated by commas, or `none`.
    #[arg(long, env = "DECREE_PREFERENCES", default_value = "create,keep-ended,scale-in,scale-in-cost,surge-on-eviction", value_parser = preferences::names, value_name = "NAMES")]
    pub preferences: BTreeSet<Preference>,

    /// A preference of the ReplicaSets of a namespace, or of all with `*`, that have no such annotation; repeatable. Example:
    /// `batch:keep-ended=5`.
    #[arg(
        long = "default-preference",
        env = "DECREE_DEFAULT_PREFERENCE",
        value_delimiter = ';',
        value_name = "NAMESPACE:NAME=VALUE"
    )]
    pub default_preferences: Vec<DefaultPreference>,

    /// The sources of deletion costs that the annotation `decree.dev/scale-in-cost` may name, separated by commas: `http` sends a GET to
    /// the pod's own address, `metric` reads custom metrics, and `grpc=URL` calls that service, with the TLS files of this agent.
    #[arg(
        long = "scale-in-costs",
        env = "DECREE_SCALE_IN_COSTS",
        value_delimiter = ',',
        value_name = "SOURCES"
    )]
    pub scale_in_costs: Vec<PermittedSource>,
}

/// A source of costs that the operator permits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermittedSource {
    /// Pods themselves.
    Http,
    /// The API of custom metrics.
    Metric,
    /// The service at this endpoint.
    Grpc(Endpoint),
}

impl PermittedSource {
    const fn kind(&self) -> CostKind {
        match self {
            Self::Http => CostKind::Http,
            Self::Metric => CostKind::Metric,
            Self::Grpc(_) => CostKind::Grpc,
        }
    }
}

impl FromStr for PermittedSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("grpc=")) {
            ("http", _) => Ok(Self::Http),
            ("metric", _) => Ok(Self::Metric),
            (_, Some(url)) => Ok(Self::Grpc(url.parse()?)),
            (_, None) => Err("is none of: http, metric, grpc=URL".to_owned()),
        }
    }
}

impl PreferenceArgs {
    /// The endpoint of the service that ranks pods, if the operator permits one.
    pub(super) fn ranker(&self) -> Result<Option<&Endpoint>, Fault> {
        let mut services = self.scale_in_costs.iter().filter_map(|it| match it {
            PermittedSource::Grpc(endpoint) => Some(endpoint),
            PermittedSource::Http | PermittedSource::Metric => None,
        });
        let service = services.next();
        if services.next().is_some() {
            return Err(Fault::new(
                "--scale-in-costs names several services: name one, which can answer for all ReplicaSets",
            ));
        }
        Ok(service)
    }

    pub(super) fn policy(&self) -> PreferencePolicy {
        PreferencePolicy {
            cost_sources: self.scale_in_costs.iter().map(|it| it.kind()).collect(),
            ..PreferencePolicy::new(self.preferences.clone(), &self.default_preferences)
        }
    }
}
