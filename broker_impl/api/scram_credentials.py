"""DescribeUserScramCredentials (API 50), v0, and AlterUserScramCredentials (API 51), v0 (KIP-554).

Every broker changes credentials; in Kafka 2.8 only the controller does.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from broker_impl.api.registry import RequestContext, api
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.security import scram
from broker_impl.wire.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
)
from broker_impl.wire.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from broker_impl.wire.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from broker_impl.wire.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_NUMBERS: Final = {name: number for number, name in _MECHANISMS.items()}


class Change(NamedTuple):
    """One change of a user's credential: None deletes it."""

    user: str
    mechanism: int
    credential: scram.Credential | None


@api(50, range(1))
async def describe(
    context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Return the mechanisms and iterations of the named users, or of all."""
    try:
        users = await context.services.security.scram_users()
    except ApiError as error:
        return DescribeUserScramCredentialsResponse(
            error_code=error.code, error_message=error.message
        )
    named = Counter(row.name for row in request.users) if request.users else Counter(list(users))
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[_description(user, count, users.get(user, {})) for user, count in named.items()],
    )


def _description(
    user: str, count: int, known: Mapping[str, scram.Credential]
) -> DescribeUserScramCredentialsResult:
    if count > 1:
        return DescribeUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message=f"Cannot describe SCRAM credentials for the same user twice in a single "
            f"request: {user}",
        )
    if not known:
        return DescribeUserScramCredentialsResult(
            user=user,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {user}",
        )
    return DescribeUserScramCredentialsResult(
        user=user,
        error_message=None,
        credential_infos=[
            CredentialInfo(mechanism=_NUMBERS[name], iterations=credential.iterations)
            for name, credential in known.items()
        ],
    )


@api(51, range(1))
async def alter(
    context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Change credentials; a user with an invalid change keeps all of its credentials."""
    changes, errors = _changes(request)
    users = dict.fromkeys(change.user for change in changes)
    for user in users:
        if user not in errors:
            own = [change for change in changes if change.user == user]
            errors[user] = await _apply(context, user, own)
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=user,
                error_code=errors[user].code,
                error_message=errors[user].message if errors[user].code else None,
            )
            for user in users
        ]
    )


_DONE: Final = ApiError(ErrorCode.NONE)


async def _apply(context: RequestContext, user: str, changes: list[Change]) -> ApiError:
    try:
        await context.services.security.alter_user(user, lambda before: altered(before, changes))
    except ApiError as error:
        return error
    return _DONE


def altered(before: Mapping[str, str], changes: Iterable[Change]) -> dict[str, str]:
    """Return a user's settings after the changes; ApiError if one deletes what does not exist."""
    after = dict(before)
    for change in changes:
        name = _MECHANISMS[change.mechanism]
        if change.credential is not None:
            after[name] = change.credential.format()
        elif name in after:
            del after[name]
        else:
            raise ApiError(
                ErrorCode.RESOURCE_NOT_FOUND,
                "Attempt to delete a user credential that does not exist",
            )
    return after


def _changes(
    request: AlterUserScramCredentialsRequest,
) -> tuple[list[Change], dict[str, ApiError]]:
    """Return the changes of a request, and the errors by user."""
    errors: dict[str, ApiError] = {}
    changes = [Change(row.name, row.mechanism, None) for row in request.deletions]
    for row in request.upsertions:
        credential = None
        problem = _problem(row.mechanism, row.iterations)
        if problem is None:
            salted, salt = bytes(row.salted_password), bytes(row.salt)
            name = _MECHANISMS[row.mechanism]
            credential = scram.credential(name, salted, salt, row.iterations)
        else:
            errors.setdefault(row.name, problem)
        changes.append(Change(row.name, row.mechanism, credential))
    seen = Counter((change.user, change.mechanism) for change in changes)
    for change in changes:
        if not change.user:
            errors[change.user] = ApiError(
                ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
            )
        elif change.mechanism not in _MECHANISMS:
            errors[change.user] = _UNKNOWN_MECHANISM
        elif seen[change.user, change.mechanism] > 1:
            errors.setdefault(change.user, _TWICE)
    return changes, errors


_UNKNOWN_MECHANISM: Final = ApiError(
    ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
)
_TWICE: Final = ApiError(
    ErrorCode.DUPLICATE_RESOURCE,
    "A user credential cannot be altered twice in the same request",
)


def _problem(mechanism: int, iterations: int) -> ApiError | None:
    """Return why a new credential is not acceptable, or None."""
    if mechanism not in _MECHANISMS:
        return _UNKNOWN_MECHANISM
    if iterations < scram.ITERATIONS_MIN:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if iterations > scram.ITERATIONS_MAX:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return None
