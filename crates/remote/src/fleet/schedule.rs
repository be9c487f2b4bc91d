//! The schedule of pairs: each node meets each other node, is in one pair at a time, and there are as few rounds as possible.

/// The number of rounds; with an odd number each node has one round without a partner.
pub fn rounds(nodes: usize) -> usize {
    nodes.next_multiple_of(2).saturating_sub(1)
}

/// The node that a node meets in a round; `None` if it has no partner in that round.
///
/// The circle method (Kirkman, 1847; de Werra, *Scheduling in Sports*, 1981): all nodes but the last form a circle, two nodes meet if
/// the sum of their numbers is twice the round's, modulo the size of the circle, and the node that would meet itself meets the last one.
pub fn partner(node: usize, round: usize, nodes: usize) -> Option<usize> {
    let circle = rounds(nodes);
    let partner = if node == circle {
        round
    } else {
        let opposite = (2 * round + circle - node) % circle;
        if opposite == node { circle } else { opposite }
    };
    (partner < nodes).then_some(partner)
}
