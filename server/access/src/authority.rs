//! The permissions at the moment: the policy in force.

use crate::{
    denial::Denial,
    identity::Identity,
    method::Need,
    permissions::{NamedCluster, Permissions},
    policy::Policy,
};

/// Answers whether a call or a session is allowed.
#[derive(Clone, Debug, Default)]
pub struct Authority {
    policy: Option<Policy>,
    /// Whether, without a policy, only peers with a proven identity may do anything.
    needs_proof: bool,
}

/// A session that was admitted, in the words of its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    uid: String,
    name: String,
    shard: String,
    /// Whether questions may name the cluster by the name from its agent.
    pub is_name_granted: bool,
}

impl Authority {
    /// Creates the authority of a policy. Without a policy, everyone may do everything, or everyone with a proven identity if
    /// `needs_proof`.
    pub const fn new(policy: Option<Policy>, needs_proof: bool) -> Self {
        Self {
            policy,
            needs_proof,
        }
    }

    /// Puts another policy in force. The caller checks the earlier admissions with [`Authority::recheck`].
    pub fn replace(&mut self, policy: Policy) {
        self.policy = Some(policy);
    }

    /// The permissions of an identity.
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

    /// Admits a session. Its name is not granted if the policy names that for agents of other identities.
    ///
    /// # Errors
    /// If the identity may not be this cluster's agent, or the policy names the UID for agents of other identities.
    pub fn admit(
        &self,
        identity: &Identity,
        cluster: NamedCluster<'_>,
    ) -> Result<Admission, Denial> {
        self.admit_with(&self.permissions(identity), identity, cluster)
    }

    fn admit_with(
        &self,
        permissions: &Permissions,
        identity: &Identity,
        cluster: NamedCluster<'_>,
    ) -> Result<Admission, Denial> {
        let NamedCluster { uid, name, shard } = cluster;
        let policy = self.policy.as_ref();
        let [is_uid_foreign, is_name_foreign] =
            policy.map_or([false; 2], |policy| policy.of_others(identity, cluster));
        if is_uid_foreign || !permissions.may_open(cluster) {
            return Err(denial(identity, serve(cluster)));
        }
        Ok(Admission {
            uid: uid.to_owned(),
            name: name.to_owned(),
            shard: shard.to_owned(),
            is_name_granted: !name.is_empty() && !is_name_foreign,
        })
    }

    /// Checks whether an admitted session would be admitted again, with the name that was granted. Returns the permissions of its agent.
    ///
    /// # Errors
    /// If it would not, because the policy has changed. A session that has lost its name is admitted again without the name.
    pub fn recheck(
        &self,
        identity: &Identity,
        admission: &Admission,
    ) -> Result<Permissions, Denial> {
        let cluster = NamedCluster {
            uid: &admission.uid,
            name: &admission.name,
            shard: &admission.shard,
        };
        let permissions = self.permissions(identity);
        let again = self.admit_with(&permissions, identity, cluster)?;
        if admission.is_name_granted && !again.is_name_granted {
            return Err(denial(identity, serve(cluster)));
        }
        Ok(permissions)
    }
}

fn serve(cluster: NamedCluster<'_>) -> String {
    let NamedCluster { uid, name, shard } = cluster;
    format!("serve cluster {uid:?} as {name:?}, shard {shard:?}")
}

fn denial(identity: &Identity, what: String) -> Denial {
    if !identity.is_proven() {
        return Denial::CredentialRequired;
    }
    let identity = identity.to_string();
    Denial::NotAllowed { identity, what }
}

#[cfg(test)]
mod tests;
