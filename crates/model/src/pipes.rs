//! How much of the quota of pipe pages a user has used (pipe(7)).

use std::fmt;

use serde::{Deserialize, Serialize};

/// The user with the most pages in visible pipes, and the limits, which are the same for every user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipeQuota {
    pub uid: u32,
    /// Capacity of the visible pipes that are charged to the user, in pages.
    pub used_pages: u64,
    /// fs.pipe-user-pages-soft: above it new pipes have two pages, and none can grow; 0: no limit.
    pub soft_pages: u64,
    /// fs.pipe-user-pages-hard: above it no pipe can be made; 0: no limit.
    pub hard_pages: u64,
}

impl fmt::Display for PipeQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { uid, used_pages, soft_pages, hard_pages } = self;
        write!(f, "Pipes of user {uid} that can be seen hold up to {used_pages} pages")?;
        let limits =
            [("soft", soft_pages), ("hard", hard_pages)].into_iter().filter(|(_, pages)| **pages > 0);
        let shares: Vec<String> = limits
            .map(|(name, pages)| {
                let percent = 100.0 * *used_pages as f64 / *pages as f64;
                format!("{percent:.0} % of the {name} quota of {pages}")
            })
            .collect();
        write!(f, "{}{}.", if shares.is_empty() { "" } else { ", " }, shares.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::PipeQuota;

    #[test]
    fn a_quota_of_0_is_no_limit() {
        let quota = PipeQuota { uid: 1000, used_pages: 8192, soft_pages: 16_384, hard_pages: 0 };
        let seen = "Pipes of user 1000 that can be seen hold up to 8192 pages";
        assert_eq!(quota.to_string(), format!("{seen}, 50 % of the soft quota of 16384."));
        assert_eq!(PipeQuota { soft_pages: 0, ..quota }.to_string(), format!("{seen}."));
    }
}
