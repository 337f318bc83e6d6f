"""Routes of the Evidence page: leave-one-out scores, and the file to send to someone."""

from datetime import UTC, datetime

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from stepsight.app.access.rights import Needs, Right, find_user_of, note_scored, note_shown
from stepsight.app.evidence.address import EvidenceAddress
from stepsight.app.evidence.evidence import Evidence, open_evidence
from stepsight.app.evidence.file import evidence_file, file_name
from stepsight.app.evidence.leave_one_out import LeftOuts
from stepsight.app.evidence.trace import left_out_record
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.errors import UserError
from stepsight.storage.database.store import Store

LEFT_OUT = "/evidence/left-out"
FILE = "/evidence/file"
# Seconds for which whoever asks waits for a judgment: the page that leads here showed it, but it may be dropped.
_PATIENCE = 60.0


def router(store: Store, evaluators: Evaluators) -> APIRouter:
    """`GET` of both, with the query of an Evidence page of one trace. They change nothing.

    They raise `UserError`, which the application answers.
    """
    routes = APIRouter(include_in_schema=False, dependencies=[Depends(Needs(Right.READ))])
    left_outs = LeftOuts()

    @routes.get(LEFT_OUT)
    def left_out(request: Request) -> JSONResponse:
        evidence, _ = _asked(store, evaluators, request)
        return JSONResponse(left_out_record(evidence, left_outs.of(evidence)))

    @routes.get(FILE)
    def file(request: Request) -> Response:
        evidence, address = _asked(store, evaluators, request)
        left_out = left_outs.of(evidence) if evidence.scorer is not None and not evidence.is_causal else None
        page = evidence_file(evidence, address, left_out, datetime.now(UTC))
        name = f'attachment; filename="{file_name(evidence.trace)}"'
        # Not as HTML: it is not one of our pages, into which the server writes its own policy.
        return Response(page, media_type="application/octet-stream", headers={"content-disposition": name})

    return routes


def _asked(store: Store, evaluators: Evaluators, request: Request) -> tuple[Evidence, EvidenceAddress]:
    address = EvidenceAddress.exact(dict(request.query_params))
    if not address.opens:
        raise UserError("The address names no trace.", "Open one on the Evidence page.")
    if address.trace is not None:
        note_shown(store, find_user_of(request), [address.trace])
    evidence = open_evidence(store, evaluators, address, _PATIENCE)
    note_scored(store, find_user_of(request), evidence.trace)
    return evidence, address
