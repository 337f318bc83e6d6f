"""Whether annotators of a campaign see which equations fail, and that a person has seen it in another campaign.

In campaigns that are there, nobody does.
"""

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0013_equation_marks"
down_revision = "0012_evaluators"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("campaigns", sa.Column("shows_equations", sa.Boolean, nullable=False, server_default=sa.false()))
    with op.batch_alter_table("exposures") as exposures:
        exposures.drop_constraint(f("ck_exposures_what"), type_="check")
        exposures.create_check_constraint(
            f("ck_exposures_what"), "what IN ('scores', 'gold', 'labels', 'equations')"
        )
