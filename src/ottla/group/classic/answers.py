"""Answers of the group protocol, built in one place each."""

from ottla.base.errors import ErrorCode
from ottla.group.model.group import Group
from ottla.group.values.member import Member
from ottla.wire.messages.classic_membership import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)

NO_MEMBER_ID = ""


def join_refused(code: ErrorCode, member_id: str = NO_MEMBER_ID) -> JoinGroupResponse:
    """The answer to a join that failed; with MEMBER_ID_REQUIRED it carries the id to use.

    It names no protocol; for versions before 7, which cannot send null, the shell sends "".
    """
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def joined(group: Group, member: Member) -> JoinGroupResponse:
    """A member's answer for the present generation; the leader's also lists all members."""
    leads = member.member_id == group.leader
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader or "",
        member_id=member.member_id,
        members=roster(group) if leads else [],
    )


def roster(group: Group) -> list[JoinGroupResponseMember]:
    """All members, as their leader needs them to assign partitions."""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata(group.protocol_name),
        )
        for member in group.members.values()
    ]


def sync_refused(code: ErrorCode) -> SyncGroupResponse:
    """The answer to a sync that failed."""
    return SyncGroupResponse(error_code=code)


def synced(group: Group, assignment: bytes) -> SyncGroupResponse:
    """The answer with a member's assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=assignment,
    )
