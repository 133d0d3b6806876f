"""The commands of a group coordinator, and what it answers.

Begin with `coordinator`. `registry` holds the groups, `conversion` changes a group's protocol,
`flights` keeps the story of a group's rebalances for `ottla why rebalance`.
"""
