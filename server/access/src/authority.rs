//! The permissions at the moment: the policy in force, and the owner of each cluster.

use crate::{
    denial::Denial,
    identity::Identity,
    method::Need,
    ownership::{Ground, Ownership},
    permissions::{NamedCluster, Permissions},
    policy::Policy,
};

/// Answers whether a call or a session is allowed.
#[derive(Clone, Debug, Default)]
pub struct Authority {
    policy: Option<Policy>,
    /// Whether, without a policy, only peers with a proven identity may do anything.
    needs_proof: bool,
    ownership: Ownership,
}

/// A session that was admitted. [`Authority::release`] ends the admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    identity: Identity,
    uid: String,
    name: String,
    shard: String,
    is_name_granted: bool,
}

impl Authority {
    /// Creates the authority of a policy. Without a policy, everyone may do everything, or everyone with a proven identity if
    /// `needs_proof`.
    #[must_use]
    pub fn new(policy: Option<Policy>, needs_proof: bool) -> Self {
        Self {
            policy,
            needs_proof,
            ownership: Ownership::default(),
        }
    }

    /// Puts another policy in force. The caller checks the earlier admissions with [`Authority::recheck`].
    pub fn replace(&mut self, policy: Policy) {
        self.policy = Some(policy);
    }

    /// The permissions of an identity.
    #[must_use]
    pub fn permissions(&self, identity: &Identity) -> Permissions {
        match &self.policy {
            Some(policy) => policy.permissions(identity),
            None if self.needs_proof && !identity.is_proven() => Permissions::default(),
            None => Permissions::unrestricted(),
        }
    }

    /// Returns the permissions of the caller of a method, if the caller may call it.
    ///
    /// # Errors
    /// If it may not.
    pub fn check_call(
        &self,
        identity: &Identity,
        path: &str,
        need: Option<Need>,
    ) -> Result<Permissions, Denial> {
        let permissions = self.permissions(identity);
        if permissions.may_call(need) {
            Ok(permissions)
        } else {
            let method = path.rsplit('/').next().unwrap_or_default();
            Err(denial(identity, format!("call {method}")))
        }
    }

    /// Admits a session, and remembers the owner of the cluster.
    ///
    /// # Errors
    /// If the identity may not be this cluster's agent, or the cluster belongs to another one.
    pub fn admit(
        &mut self,
        identity: &Identity,
        cluster: NamedCluster<'_>,
    ) -> Result<Admission, Denial> {
        let [of_uid, of_name] = self.grounds(identity, cluster)?;
        if !self.ownership.open(identity, cluster.uid, of_uid) {
            return Err(foreign(identity, cluster));
        }
        let is_name_granted =
            !cluster.name.is_empty() && self.ownership.open(identity, cluster.name, of_name);
        Ok(Admission {
            identity: identity.clone(),
            uid: cluster.uid.to_owned(),
            name: cluster.name.to_owned(),
            shard: cluster.shard.to_owned(),
            is_name_granted,
        })
    }

    /// Checks whether an admitted session would be admitted again, with the name that was granted.
    ///
    /// # Errors
    /// If it would not: the policy has changed, or its UID or name belongs to another identity now. A session that has lost its name is
    /// admitted again without the name.
    pub fn recheck(&self, admission: &Admission) -> Result<(), Denial> {
        let (identity, cluster) = (&admission.identity, admission.cluster());
        let grounds = self.grounds(identity, cluster)?;
        let mut asked = admission.words().zip(grounds);
        if asked.all(|(word, ground)| self.ownership.is_open_to(identity, word, ground)) {
            Ok(())
        } else {
            Err(foreign(identity, cluster))
        }
    }

    /// Ends the admission of a session. The cluster still belongs to its identity.
    pub fn release(&mut self, admission: &Admission) {
        for word in admission.words() {
            self.ownership.close(&admission.identity, word);
        }
    }

    /// Returns the grounds on which an identity asks for the UID and for the name of a cluster, if it may serve the cluster at all. A user's
    /// id on a Unix socket owns nothing unless a policy names such ids: without one, an agent that comes back as another user is the same
    /// agent.
    fn grounds(
        &self,
        identity: &Identity,
        cluster: NamedCluster<'_>,
    ) -> Result<[Ground; 2], Denial> {
        if !self.permissions(identity).may_open(cluster) {
            return Err(denial(identity, serve(cluster)));
        }
        let policy = self.policy.as_ref();
        let is_unproven = match identity {
            Identity::Anonymous | Identity::Console => true,
            Identity::Uid(_) => policy.is_none(),
            Identity::Uri(_) | Identity::Dns(_) | Identity::Subject(_) => false,
        };
        let unnamed = if is_unproven {
            Ground::Unproven
        } else {
            Ground::First
        };
        let named = policy.map(|policy| policy.grounds(identity, cluster));
        Ok(named
            .unwrap_or_default()
            .map(|ground| ground.unwrap_or(unnamed)))
    }
}

fn serve(cluster: NamedCluster<'_>) -> String {
    format!(
        "serve cluster {:?} as {:?}, shard {:?}",
        cluster.uid, cluster.name, cluster.shard
    )
}

fn denial(identity: &Identity, what: String) -> Denial {
    if !identity.is_proven() {
        return Denial::CredentialRequired;
    }
    let identity = identity.to_string();
    Denial::NotAllowed { identity, what }
}

fn foreign(identity: &Identity, cluster: NamedCluster<'_>) -> Denial {
    if !identity.is_proven() {
        return Denial::CredentialRequired;
    }
    let (identity, what) = (identity.to_string(), serve(cluster));
    Denial::OtherOwner { identity, what }
}

impl Admission {
    /// Whether questions may name the cluster by the name from its agent.
    #[must_use]
    pub const fn is_name_granted(&self) -> bool {
        self.is_name_granted
    }

    /// Whether both use the same word: a UID, or a name that was granted.
    #[must_use]
    pub fn shares_a_word_with(&self, other: &Self) -> bool {
        self.words()
            .any(|word| other.words().any(|other| other == word))
    }

    /// Returns the UID, and the name if it was granted.
    fn words(&self) -> impl Iterator<Item = &str> {
        let name = self.is_name_granted.then_some(&*self.name);
        std::iter::once(&*self.uid).chain(name)
    }

    fn cluster(&self) -> NamedCluster<'_> {
        NamedCluster {
            uid: &self.uid,
            name: &self.name,
            shard: &self.shard,
        }
    }
}

#[cfg(test)]
mod tests;
