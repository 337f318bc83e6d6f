"""An index of traces by their texts: what somebody enters is looked for among them."""

from alembic import op

revision = "0019_texts_found"
down_revision = "0018_spent"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_traces_text_digest", "traces", ["text_digest"])
