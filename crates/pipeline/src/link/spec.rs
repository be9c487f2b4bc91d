//! The specs of links, as the user types them. They are checked before anything is started.

use std::fmt;

use mechanism::{Capabilities, Folder, Mechanism, OpenError, Options, Order, SpecProblem};
use model::{Spec, SpecError, nearest};
use thiserror::Error;

use super::{Bell, Link, refused};

/// The prefix of a link through another host.
pub(super) const SSH: &str = "ssh:";

/// An option of all links except stored ones: `ends=pipe` gives both programs a pipe, with relays between it and the link.
const ENDS: &str = "ends";

/// The user's choice of a link: a mechanism that can connect two programs, with its options, or another host.
#[derive(Clone)]
pub struct LinkSpec {
    text: String,
    route: Route,
}

/// The way of the bytes.
#[derive(Clone)]
enum Route {
    /// `pipe_ends`: both programs get pipes.
    Mechanism { mechanism: &'static Mechanism, options: Options, pipe_ends: bool },
    /// A destination of ssh(1).
    Ssh(String),
}

/// Why a text is not the spec of a link, and the specs that are possible. Caused by a mistake on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LinkProblem(String);

impl LinkSpec {
    /// Parses a spec and checks that it can be a link. Whether the system allows it is known after [`LinkSpec::connect`].
    ///
    /// # Errors
    /// What is wrong with the text, and what is possible.
    pub fn parse(text: &str) -> Result<Self, LinkProblem> {
        if let Some(host) = text.strip_prefix(SSH) {
            let odd = |letter: char| letter.is_whitespace() || letter.is_control();
            if host.is_empty() || host.starts_with('-') || host.contains(odd) {
                let shown = model::one_line(text);
                return Err(LinkProblem(format!("`{shown}` names no host: ssh:HOST or ssh:USER@HOST")));
            }
            return Ok(Self { text: text.to_owned(), route: Route::Ssh(host.to_owned()) });
        }
        let mut spec: Spec = text.parse().map_err(|problem: SpecError| LinkProblem(problem.to_string()))?;
        let ends = spec.options.remove(ENDS);
        let (mechanism, options) = mechanism::resolve(&spec).map_err(|problem| match problem {
            SpecProblem::UnknownMechanism { name, .. } => Self::unknown(&name),
            other => LinkProblem(other.to_string()),
        })?;
        let Mechanism { name, capabilities, link_options, .. } = mechanism;
        if !capabilities.contains(Capabilities::LINK) {
            let problem = format!("`{name}` cannot connect two programs; these can: {}", Self::list());
            return Err(LinkProblem(problem));
        }
        if let Some(option) = spec.options.keys().find(|option| !link_options.contains(&option.as_str())) {
            let ends = (!capabilities.contains(Capabilities::STORES_DATA)).then_some(&ENDS);
            let known = link_options.iter().chain(ends).copied().collect::<Vec<_>>().join(", ");
            let problem = format!(
                "`{option}` of `{name}` is only for benchmarks; the options of the link are: {known}"
            );
            return Err(LinkProblem(problem));
        }
        if ends.as_ref().is_some_and(|ends| ends.as_deref() != Some("pipe")) {
            return Err(LinkProblem(format!("`{ENDS}` of `{name}` is `{ENDS}=pipe`, or is not given")));
        }
        if ends.is_some() && capabilities.contains(Capabilities::STORES_DATA) {
            return Err(LinkProblem(format!(
                "`{name}` has no `{ENDS}=pipe`: both programs have pipes anyway, and with order=sequential the file itself"
            )));
        }
        let route = Route::Mechanism { mechanism, options, pipe_ends: ends.is_some() };
        Ok(Self { text: text.to_owned(), route })
    }

    /// The message for an unknown name.
    fn unknown(name: &str) -> LinkProblem {
        let near = nearest(name, Self::names()).map(|near| format!(": did you mean `{near}`?"));
        let (end, links) = (near.unwrap_or_else(|| ".".to_owned()), Self::list());
        LinkProblem(format!("unknown link `{name}`{end} These are links: {links}, {SSH}HOST"))
    }

    /// The names of the mechanisms that can be links, with commas between.
    pub(crate) fn list() -> String {
        Self::names().collect::<Vec<_>>().join(", ")
    }

    /// The mechanisms that can be links, in the order of the registry.
    pub fn names() -> impl Iterator<Item = &'static str> {
        mechanism::all()
            .iter()
            .filter(|mechanism| mechanism.capabilities.contains(Capabilities::LINK))
            .map(|mechanism| mechanism.name)
    }

    /// Whether the reading program runs with the writer, or, through a file, after it.
    pub fn order(&self) -> Order {
        match &self.route {
            Route::Mechanism { options, .. } => Order::from_options(options),
            Route::Ssh(_) => Order::Parallel,
        }
    }

    /// Whether it is a pipe, of any size, which a shell can make by itself.
    pub fn is_pipe(&self) -> bool {
        matches!(self.route, Route::Mechanism { mechanism, .. } if mechanism.name == "pipe")
    }

    /// Whether its bytes go through another host.
    pub(crate) fn goes_through_ssh(&self) -> bool {
        matches!(self.route, Route::Ssh(_))
    }

    /// Whether the user chose its size.
    pub(crate) fn is_sized(&self) -> bool {
        has_size_option(&self.text)
    }

    /// The message for a link that cannot be made, with the remedy.
    pub(crate) fn refusal(&self, error: &OpenError) -> String {
        let remedy = error.remedy.as_ref().map(|remedy| format!(": {remedy}")).unwrap_or_default();
        format!("link {}: {error}{remedy}", self.text)
    }

    /// Opens both ends, and starts a relay if one is needed. Names in a file system are made in `folder`, which only this user may enter, or in
    /// the folder of `dir=`. `bell` is rung when a relay has failed or ended, and when all writers have closed a file in sequential order.
    ///
    /// # Errors
    /// A limit that an option exceeds, or the system's refusal.
    pub fn connect(&self, folder: &Folder, bell: &Bell) -> Result<Link, OpenError> {
        let (mechanism, options, pipe_ends) = match &self.route {
            Route::Mechanism { mechanism, options, pipe_ends } => (mechanism, options, *pipe_ends),
            Route::Ssh(host) => return Link::through_ssh(self.text.clone(), host, bell),
        };
        if mechanism.capabilities.contains(Capabilities::NEEDS_CLEANUP) {
            // Before the first name is made, so that nothing is left even after SIGKILL.
            mechanism::ensure_cleaner().map_err(refused("starting the process that removes files"))?;
        }
        let ends = mechanism.connect(options, folder).unwrap_or_else(|| {
            // A test of the registry makes sure that every mechanism with `Capabilities::LINK` connects.
            let text = format!("`{}` cannot connect two programs", self.text);
            Err(OpenError::unsupported(text, "another link"))
        })?;
        Link::between(self.text.clone(), ends, pipe_ends && !self.is_pipe(), bell)
    }
}

/// Whether a spec has the option `size`.
pub(super) fn has_size_option(text: &str) -> bool {
    text.parse::<Spec>().is_ok_and(|spec| spec.options.contains_key("size"))
}

impl fmt::Display for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl fmt::Debug for LinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LinkSpec").field(&self.text).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_no_size() {
        let said = ["pipe", "pipe:size=64k", "file:dir=/x/size=1"].map(has_size_option);
        assert_eq!(said, [false, true, false]);
    }

    #[test]
    fn a_spec_prints_as_it_was_typed() {
        for text in [
            "pipe",
            "ssh:me@db2",
            "pipe:size=64k",
            "tcp:nodelay,sndbuf=1MiB",
            "file:sync,order=sequential",
            "pty",
            "socketpair:ends=pipe,sndbuf=1MiB",
        ] {
            assert_eq!(LinkSpec::parse(text).map(|spec| spec.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_host_is_one_word_and_no_option_of_ssh() {
        for wrong in ["ssh:", "ssh:-oProxyCommand=x", "ssh:a b", "ssh:a\nb"] {
            assert!(LinkSpec::parse(wrong).is_err_and(|problem| problem.to_string().contains("ssh:HOST")));
        }
    }

    #[test]
    fn order_is_parallel_unless_the_spec_says_otherwise() {
        let order = |text| LinkSpec::parse(text).expect("a link").order();
        assert_eq!(order("tmpfile"), Order::Parallel);
        assert_eq!(order("pipe"), Order::Parallel);
        assert_eq!(order("tmpfile:order=parallel"), Order::Parallel);
        assert_eq!(order("file:order=sequential"), Order::Sequential);
    }

    #[test]
    fn what_cannot_be_a_link_says_what_can() {
        let message =
            |text| LinkSpec::parse(text).err().map(|problem| problem.to_string()).unwrap_or_default();
        assert!(
            message("shm-ring").contains("pipe, fifo, socketpair, unix-stream, tcp"),
            "{}",
            message("shm-ring")
        );
        assert!(
            message("pip")
                .starts_with("unknown link `pip`: did you mean `pipe`? These are links: pipe, fifo, ")
        );
        assert!(message("zzzz").starts_with("unknown link `zzzz`. These are links: pipe, fifo, "));
        assert!(
            message("shm-rng").ends_with(", ssh:HOST"),
            "no word of what is no link: {}",
            message("shm-rng")
        );
        assert!(message("pipe:siez=1k").contains("did you mean `size`?"));
        assert!(message("pipe:send=vmsplice").contains("the options of the link are: size, ends"));
        assert!(message("socketpair:ends=socket").contains("is `ends=pipe`"));
        assert!(message("file:ends=pipe").contains("have pipes anyway"));
        assert!(message("tmpfile:order=later").contains("parallel, sequential"));
        assert!(message("").contains("names no mechanism"));
    }
}
