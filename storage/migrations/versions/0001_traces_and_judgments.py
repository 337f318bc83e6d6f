"""Datasets of traces, evaluators, and their judgments."""

import sqlalchemy as sa
from alembic import op
from alembic.op import f

revision = "0001_traces_and_judgments"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _datasets()
    _traces()
    _trace_indexes()
    _steps()
    _evaluators()
    _judgments()


def _datasets() -> None:
    op.create_table(
        "datasets",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(200), nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f("pk_datasets")),
        sa.UniqueConstraint("name", name=f("uq_datasets_name")),
    )


def _traces() -> None:
    op.create_table(
        "traces",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("external_id", sa.String(500), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("n_steps", sa.Integer, nullable=False),
        sa.Column("n_substeps", sa.Integer, nullable=False),
        sa.Column("first_error", sa.Integer),
        sa.Column("has_gold", sa.Boolean, nullable=False),
        sa.Column("meta", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=f("pk_traces")),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=f("fk_traces_dataset_id"), ondelete="CASCADE"
        ),
        sa.UniqueConstraint("dataset_id", "external_id", name=f("uq_traces_dataset_id_external_id")),
        sa.UniqueConstraint("dataset_id", "position", name=f("uq_traces_dataset_id_position")),
        sa.UniqueConstraint("id", "dataset_id", name=f("uq_traces_id_dataset_id")),
        sa.CheckConstraint("position >= 0", name=f("ck_traces_position")),
        sa.CheckConstraint("n_steps > 0 AND n_substeps >= n_steps", name=f("ck_traces_counts")),
        sa.CheckConstraint("first_error >= 0 AND first_error < n_steps", name=f("ck_traces_first_error")),
        sa.CheckConstraint("first_error IS NULL OR has_gold", name=f("ck_traces_has_gold")),
    )


def _trace_indexes() -> None:
    counted = ["dataset_id", "first_error", "has_gold", "n_steps", "n_substeps"]
    op.create_index("ix_traces_counts", "traces", counted)
    partial = {
        "ix_traces_gold_error": ("first_error IS NOT NULL", "first_error IS NOT NULL"),
        "ix_traces_gold_clean": (
            "first_error IS NULL AND has_gold IS 1",
            "first_error IS NULL AND has_gold IS true",
        ),
        "ix_traces_gold_missing": (
            "first_error IS NULL AND has_gold IS 0",
            "first_error IS NULL AND has_gold IS false",
        ),
    }
    for name, (sqlite, postgresql) in partial.items():
        op.create_index(
            name,
            "traces",
            ["dataset_id", "position"],
            sqlite_where=sa.text(sqlite),
            postgresql_where=sa.text(postgresql),
        )


def _steps() -> None:
    op.create_table(
        "steps",
        sa.Column("trace_id", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("label", sa.SmallInteger),
        sa.Column("valid", sa.Boolean),
        sa.PrimaryKeyConstraint("trace_id", "position", name=f("pk_steps")),
        sa.ForeignKeyConstraint(["trace_id"], ["traces.id"], name=f("fk_steps_trace_id"), ondelete="CASCADE"),
        sa.CheckConstraint("position >= 0", name=f("ck_steps_position")),
        sa.CheckConstraint("label IN (0, 1, 2)", name=f("ck_steps_label")),
        sa.CheckConstraint(
            "label IS NULL OR (valid IS NOT NULL AND valid = (label <> 0))",
            name=f("ck_steps_label_says_valid"),
        ),
    )
    op.create_table(
        "substeps",
        sa.Column("trace_id", sa.Integer, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("trace_id", "step", "position", name=f("pk_substeps")),
        sa.ForeignKeyConstraint(
            ["trace_id", "step"],
            ["steps.trace_id", "steps.position"],
            name=f("fk_substeps_trace_id_step"),
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("position >= 0", name=f("ck_substeps_position")),
    )


def _evaluators() -> None:
    op.create_table(
        "evaluators",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("fingerprint", sa.String(200), nullable=False),
        sa.Column("format", sa.String(200), nullable=False),
        sa.Column("attention", sa.String(200), nullable=False),
        sa.Column("info", sa.JSON, nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f("pk_evaluators")),
        sa.UniqueConstraint("fingerprint", name=f("uq_evaluators_fingerprint")),
    )


def _judgments() -> None:
    op.create_table(
        "judgments",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("trace_id", sa.Integer, nullable=False),
        sa.Column("dataset_id", sa.Integer, nullable=False),
        sa.Column("evaluator_id", sa.Integer, nullable=False),
        sa.Column("mode", sa.String(20), nullable=False),
        sa.Column("trace_digest", sa.String(64), nullable=False),
        sa.Column("probabilities", sa.LargeBinary, nullable=False),
        sa.Column("validity", sa.Double, nullable=False),
        sa.Column("redundancy", sa.Double, nullable=False),
        sa.Column("online_validity", sa.Double),
        sa.Column("online_redundancy", sa.Double),
        sa.Column("retroactive", sa.Double),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=f("pk_judgments")),
        sa.ForeignKeyConstraint(
            ["trace_id", "dataset_id"],
            ["traces.id", "traces.dataset_id"],
            name=f("fk_judgments_trace_id_dataset_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["evaluator_id"], ["evaluators.id"], name=f("fk_judgments_evaluator_id"), ondelete="RESTRICT"
        ),
        sa.UniqueConstraint("trace_id", "evaluator_id", "mode", name=f("uq_judgments_trace_id_evaluator_id_mode")),
        sa.CheckConstraint("mode IN ('offline', 'online', 'hindsight')", name=f("ck_judgments_mode")),
        sa.CheckConstraint(
            "(mode = 'hindsight') = (online_validity IS NOT NULL)"
            " AND (mode = 'hindsight') = (online_redundancy IS NOT NULL)"
            " AND (mode = 'hindsight') = (retroactive IS NOT NULL)",
            name=f("ck_judgments_hindsight_columns"),
        ),
    )
    op.create_index(
        "ix_judgments_evaluator_validity",
        "judgments",
        ["evaluator_id", "dataset_id", "mode", "validity", "trace_id"],
    )
