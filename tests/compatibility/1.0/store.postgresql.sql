SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE FUNCTION public.keep_dispute_entries() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'dispute_entries is append-only' USING ERRCODE = 'restrict_violation'; END $$;
CREATE FUNCTION public.keep_disputes() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'disputes is append-only' USING ERRCODE = 'restrict_violation'; END $$;
CREATE FUNCTION public.keep_guidelines() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'guidelines is append-only' USING ERRCODE = 'restrict_violation'; END $$;
CREATE FUNCTION public.keep_label_events() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'label_events is append-only' USING ERRCODE = 'restrict_violation'; END $$;
CREATE FUNCTION public.note_deleted_traces() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ BEGIN UPDATE datasets SET revision = revision + 1 WHERE id IN (SELECT dataset_id FROM gone); RETURN NULL; END $$;
CREATE FUNCTION public.search_trigrams(text) RETURNS text[]
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    AS $_$ SELECT coalesce(array_agg(DISTINCT substr(lower($1), i, 3)), '{}') FROM generate_series(1, char_length(lower($1)) - 2) AS i $_$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.calibrations (
    id integer NOT NULL,
    evaluator_id integer NOT NULL,
    dataset_id integer,
    dataset character varying(200) NOT NULL,
    validity double precision NOT NULL,
    redundancy double precision NOT NULL,
    info json NOT NULL,
    created timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.calibrations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.calibrations_id_seq OWNED BY public.calibrations.id;
CREATE TABLE public.campaign_annotators (
    campaign_id integer NOT NULL,
    user_id integer NOT NULL,
    added timestamp with time zone NOT NULL,
    added_by integer NOT NULL
);
CREATE TABLE public.campaign_items (
    id integer NOT NULL,
    campaign_id integer NOT NULL,
    trace_id integer NOT NULL,
    digest character varying(64) NOT NULL,
    place integer NOT NULL,
    chosen character varying(20) NOT NULL,
    text_digest character varying(64) DEFAULT ''::character varying NOT NULL,
    CONSTRAINT ck_campaign_items_chosen CHECK (((chosen)::text = ANY ((ARRAY['ordered'::character varying, 'random'::character varying, 'gold'::character varying])::text[])))
);
CREATE SEQUENCE public.campaign_items_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.campaign_items_id_seq OWNED BY public.campaign_items.id;
CREATE TABLE public.campaigns (
    id integer NOT NULL,
    name character varying(200) NOT NULL,
    dataset_id integer NOT NULL,
    conditions json NOT NULL,
    overlap integer NOT NULL,
    after_error boolean NOT NULL,
    view character varying(20) NOT NULL,
    shows character varying(20) NOT NULL,
    evaluator_id integer,
    ordering character varying(20) NOT NULL,
    random_share double precision NOT NULL,
    gold_rate double precision NOT NULL,
    lease integer NOT NULL,
    seed integer NOT NULL,
    created timestamp with time zone NOT NULL,
    created_by integer NOT NULL,
    closed timestamp with time zone,
    shows_answer boolean DEFAULT false NOT NULL,
    restricted boolean DEFAULT false NOT NULL,
    error_kinds json DEFAULT '[]'::json NOT NULL,
    after_submission character varying(20) DEFAULT 'everything'::character varying NOT NULL,
    sample integer,
    population integer,
    suggests boolean DEFAULT false NOT NULL,
    shows_equations boolean DEFAULT false NOT NULL,
    CONSTRAINT ck_campaigns_after_submission CHECK (((after_submission)::text = ANY ((ARRAY['nothing'::character varying, 'gold'::character varying, 'everything'::character varying])::text[]))),
    CONSTRAINT ck_campaigns_lease CHECK ((lease > 0)),
    CONSTRAINT ck_campaigns_ordering CHECK (((ordering)::text = ANY ((ARRAY['file'::character varying, 'random'::character varying, 'disagreement'::character varying, 'change'::character varying])::text[]))),
    CONSTRAINT ck_campaigns_overlap CHECK ((overlap > 0)),
    CONSTRAINT ck_campaigns_population CHECK ((population >= sample)),
    CONSTRAINT ck_campaigns_sample CHECK ((sample > 0)),
    CONSTRAINT ck_campaigns_shares CHECK ((((random_share >= (0)::double precision) AND (random_share <= (1)::double precision)) AND ((gold_rate >= (0)::double precision) AND (gold_rate <= (0.5)::double precision)))),
    CONSTRAINT ck_campaigns_shows CHECK (((shows)::text = ANY ((ARRAY['nothing'::character varying, 'scores'::character varying])::text[]))),
    CONSTRAINT ck_campaigns_shows_an_evaluator CHECK ((((shows)::text = 'nothing'::text) OR (evaluator_id IS NOT NULL))),
    CONSTRAINT ck_campaigns_view CHECK (((view)::text = ANY ((ARRAY['whole'::character varying, 'stepwise'::character varying])::text[])))
);
CREATE SEQUENCE public.campaigns_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.campaigns_id_seq OWNED BY public.campaigns.id;
CREATE TABLE public.datasets (
    id integer NOT NULL,
    name character varying(200) NOT NULL,
    kind character varying(200) NOT NULL,
    source text NOT NULL,
    sha256 character varying(64) NOT NULL,
    created timestamp with time zone NOT NULL,
    revision integer DEFAULT 0 NOT NULL
);
CREATE SEQUENCE public.datasets_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.datasets_id_seq OWNED BY public.datasets.id;
CREATE TABLE public.dispute_entries (
    id integer NOT NULL,
    dispute_id integer NOT NULL,
    user_id integer NOT NULL,
    state character varying(20),
    text text NOT NULL,
    moment timestamp with time zone NOT NULL,
    CONSTRAINT ck_dispute_entries_state CHECK (((state)::text = ANY ((ARRAY['open'::character varying, 'accepted'::character varying, 'rejected'::character varying, 'withdrawn'::character varying])::text[])))
);
CREATE SEQUENCE public.dispute_entries_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.dispute_entries_id_seq OWNED BY public.dispute_entries.id;
CREATE TABLE public.disputes (
    id integer NOT NULL,
    trace_id integer NOT NULL,
    digest character varying(64) NOT NULL,
    step integer NOT NULL,
    gold character varying(20),
    proposed character varying(20),
    reason text NOT NULL,
    user_id integer NOT NULL,
    moment timestamp with time zone NOT NULL,
    CONSTRAINT ck_disputes_step CHECK ((step >= 0))
);
CREATE SEQUENCE public.disputes_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.disputes_id_seq OWNED BY public.disputes.id;
CREATE TABLE public.evaluators (
    id integer NOT NULL,
    name character varying(200) NOT NULL,
    fingerprint character varying(200) NOT NULL,
    format character varying(200) NOT NULL,
    attention character varying(200) NOT NULL,
    info json NOT NULL,
    created timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.evaluators_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.evaluators_id_seq OWNED BY public.evaluators.id;
CREATE TABLE public.exposures (
    user_id integer NOT NULL,
    text_digest character varying(64) NOT NULL,
    what character varying(20) NOT NULL,
    moment timestamp with time zone NOT NULL,
    CONSTRAINT ck_exposures_what CHECK (((what)::text = ANY ((ARRAY['scores'::character varying, 'gold'::character varying, 'labels'::character varying, 'equations'::character varying])::text[])))
);
CREATE TABLE public.failed_logins (
    id integer NOT NULL,
    key character varying(200) NOT NULL,
    moment timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.failed_logins_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.failed_logins_id_seq OWNED BY public.failed_logins.id;
CREATE TABLE public.guidelines (
    campaign_id integer NOT NULL,
    version integer NOT NULL,
    text text NOT NULL,
    created timestamp with time zone NOT NULL,
    created_by integer NOT NULL,
    CONSTRAINT ck_guidelines_version CHECK ((version > 0))
);
CREATE TABLE public.homes (
    key character varying(200) NOT NULL,
    moment timestamp with time zone NOT NULL
);
CREATE TABLE public.invitation_campaigns (
    invitation_id integer NOT NULL,
    campaign_id integer NOT NULL
);
CREATE TABLE public.invitations (
    id integer NOT NULL,
    digest character varying(64) NOT NULL,
    name character varying(200),
    role character varying(20) NOT NULL,
    user_id integer,
    created timestamp with time zone NOT NULL,
    created_by integer NOT NULL,
    expires timestamp with time zone NOT NULL,
    used timestamp with time zone,
    revoked timestamp with time zone,
    CONSTRAINT ck_invitations_role CHECK (((role)::text = ANY ((ARRAY['viewer'::character varying, 'annotator'::character varying, 'adjudicator'::character varying, 'admin'::character varying])::text[])))
);
CREATE SEQUENCE public.invitations_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.invitations_id_seq OWNED BY public.invitations.id;
CREATE TABLE public.jobs (
    id integer NOT NULL,
    task character varying(20) DEFAULT 'judge'::character varying NOT NULL,
    subject text DEFAULT ''::text NOT NULL,
    request json,
    dataset_id integer,
    evaluator character varying(200),
    spec text,
    fingerprint character varying(200),
    mode character varying(20),
    state character varying(20) NOT NULL,
    total bigint NOT NULL,
    began bigint NOT NULL,
    done bigint NOT NULL,
    left_out integer NOT NULL,
    attempts integer NOT NULL,
    reason text NOT NULL,
    worker character varying(200),
    created timestamp with time zone NOT NULL,
    started timestamp with time zone,
    heartbeat timestamp with time zone,
    finished timestamp with time zone,
    CONSTRAINT ck_jobs_mode CHECK (((mode)::text = ANY ((ARRAY['offline'::character varying, 'online'::character varying, 'hindsight'::character varying])::text[]))),
    CONSTRAINT ck_jobs_running_has_a_worker CHECK ((((state)::text <> 'running'::text) OR ((worker IS NOT NULL) AND (heartbeat IS NOT NULL)))),
    CONSTRAINT ck_jobs_state CHECK (((state)::text = ANY ((ARRAY['queued'::character varying, 'running'::character varying, 'done'::character varying, 'failed'::character varying, 'cancelled'::character varying])::text[]))),
    CONSTRAINT ck_jobs_task CHECK (((((task)::text = 'judge'::text) AND (dataset_id IS NOT NULL) AND (evaluator IS NOT NULL) AND (spec IS NOT NULL) AND (fingerprint IS NOT NULL) AND (mode IS NOT NULL)) OR (((task)::text = ANY ((ARRAY['import'::character varying, 'fetch'::character varying])::text[])) AND (request IS NOT NULL))))
);
CREATE SEQUENCE public.jobs_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.jobs_id_seq OWNED BY public.jobs.id;
CREATE TABLE public.judged (
    dataset_id integer NOT NULL,
    evaluator_id integer NOT NULL,
    revision integer NOT NULL
);
CREATE TABLE public.judgments (
    id integer NOT NULL,
    trace_id integer NOT NULL,
    dataset_id integer NOT NULL,
    evaluator_id integer NOT NULL,
    mode character varying(20) NOT NULL,
    trace_digest character varying(64) NOT NULL,
    probabilities bytea NOT NULL,
    validity double precision NOT NULL,
    redundancy double precision NOT NULL,
    online_validity double precision,
    online_redundancy double precision,
    retroactive double precision,
    created timestamp with time zone NOT NULL,
    solution double precision,
    rationale text,
    spread bytea,
    spent json,
    CONSTRAINT ck_judgments_hindsight_columns CHECK (((((mode)::text = 'hindsight'::text) = (online_validity IS NOT NULL)) AND (((mode)::text = 'hindsight'::text) = (online_redundancy IS NOT NULL)) AND (((mode)::text = 'hindsight'::text) = (retroactive IS NOT NULL)))),
    CONSTRAINT ck_judgments_mode CHECK (((mode)::text = ANY ((ARRAY['offline'::character varying, 'online'::character varying, 'hindsight'::character varying])::text[])))
);
CREATE SEQUENCE public.judgments_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.judgments_id_seq OWNED BY public.judgments.id;
CREATE TABLE public.label_events (
    id integer NOT NULL,
    campaign_id integer NOT NULL,
    item_id integer NOT NULL,
    slot_id integer,
    user_id integer NOT NULL,
    kind character varying(20) NOT NULL,
    step integer,
    old json,
    new json,
    cause character varying(20) NOT NULL,
    of integer,
    key character varying(64) NOT NULL,
    moment timestamp with time zone NOT NULL,
    seconds double precision,
    digest character varying(64) NOT NULL,
    guideline integer NOT NULL,
    view character varying(20) NOT NULL,
    revealed integer,
    visible json NOT NULL,
    CONSTRAINT ck_label_events_cause CHECK (((cause)::text = ANY ((ARRAY[''::character varying, 'undo'::character varying, 'redo'::character varying])::text[]))),
    CONSTRAINT ck_label_events_cause_of CHECK ((((cause)::text = ''::text) = (of IS NULL))),
    CONSTRAINT ck_label_events_step CHECK ((step >= 0))
);
CREATE SEQUENCE public.label_events_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.label_events_id_seq OWNED BY public.label_events.id;
CREATE TABLE public.left_out (
    dataset_id integer NOT NULL,
    digest character varying(64) NOT NULL,
    source text NOT NULL,
    place text NOT NULL,
    error text NOT NULL
);
CREATE TABLE public.logins (
    digest character varying(64) NOT NULL,
    user_id integer NOT NULL,
    created timestamp with time zone NOT NULL,
    expires timestamp with time zone NOT NULL
);
CREATE TABLE public.profiles (
    evaluator_id integer NOT NULL,
    dataset_id integer NOT NULL,
    mode character varying(20) NOT NULL,
    trace_id integer NOT NULL,
    online bytea,
    offline bytea,
    CONSTRAINT ck_profiles_mode CHECK (((mode)::text = ANY ((ARRAY['offline'::character varying, 'online'::character varying, 'hindsight'::character varying])::text[])))
);
CREATE TABLE public.server_secrets (
    name character varying(20) NOT NULL,
    secret bytea NOT NULL
);
CREATE TABLE public.slots (
    id integer NOT NULL,
    campaign_id integer NOT NULL,
    item_id integer NOT NULL,
    number integer NOT NULL,
    state character varying(20) NOT NULL,
    user_id integer,
    taken timestamp with time zone,
    expires timestamp with time zone,
    ended timestamp with time zone,
    public_id character varying(16) DEFAULT ''::character varying NOT NULL,
    CONSTRAINT ck_slots_ended CHECK ((((state)::text = ANY ((ARRAY['submitted'::character varying, 'skipped'::character varying])::text[])) = (ended IS NOT NULL))),
    CONSTRAINT ck_slots_free_has_nobody CHECK ((((state)::text = 'free'::text) = (user_id IS NULL))),
    CONSTRAINT ck_slots_leased_expires CHECK ((((state)::text = 'leased'::text) = (expires IS NOT NULL))),
    CONSTRAINT ck_slots_state CHECK (((state)::text = ANY ((ARRAY['free'::character varying, 'leased'::character varying, 'submitted'::character varying, 'skipped'::character varying])::text[])))
);
CREATE SEQUENCE public.slots_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.slots_id_seq OWNED BY public.slots.id;
CREATE TABLE public.steps (
    trace_id integer NOT NULL,
    "position" integer NOT NULL,
    label smallint,
    valid boolean,
    CONSTRAINT ck_steps_label CHECK ((label = ANY (ARRAY[0, 1, 2]))),
    CONSTRAINT ck_steps_label_says_valid CHECK (((label IS NULL) OR ((valid IS NOT NULL) AND (valid = (label <> 0))))),
    CONSTRAINT ck_steps_position CHECK (("position" >= 0))
);
CREATE TABLE public.substeps (
    trace_id integer NOT NULL,
    step integer NOT NULL,
    "position" integer NOT NULL,
    text text NOT NULL,
    CONSTRAINT ck_substeps_position CHECK (("position" >= 0))
);
CREATE TABLE public.traces (
    id integer NOT NULL,
    dataset_id integer NOT NULL,
    external_id character varying(500) NOT NULL,
    "position" integer NOT NULL,
    problem text NOT NULL,
    digest character varying(64) NOT NULL,
    n_steps integer NOT NULL,
    n_substeps integer NOT NULL,
    first_error integer,
    has_gold boolean NOT NULL,
    n_redundant integer DEFAULT 0 NOT NULL,
    meta json NOT NULL,
    text_digest character varying(64) DEFAULT ''::character varying NOT NULL,
    CONSTRAINT ck_traces_counts CHECK (((n_steps > 0) AND (n_substeps >= n_steps))),
    CONSTRAINT ck_traces_first_error CHECK (((first_error >= 0) AND (first_error < n_steps))),
    CONSTRAINT ck_traces_has_gold CHECK (((first_error IS NULL) OR has_gold)),
    CONSTRAINT ck_traces_position CHECK (("position" >= 0))
);
CREATE SEQUENCE public.traces_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.traces_id_seq OWNED BY public.traces.id;
CREATE TABLE public.upload_parts (
    upload_id integer NOT NULL,
    start integer NOT NULL,
    content bytea NOT NULL
);
CREATE TABLE public.uploads (
    id integer NOT NULL,
    user_id integer NOT NULL,
    name character varying(200) NOT NULL,
    size integer NOT NULL,
    modified character varying(40) NOT NULL,
    received integer NOT NULL,
    sha256 character varying(64),
    created timestamp with time zone NOT NULL,
    touched timestamp with time zone NOT NULL,
    CONSTRAINT ck_uploads_received CHECK (((size > 0) AND (received >= 0) AND (received <= size))),
    CONSTRAINT ck_uploads_whole CHECK (((sha256 IS NULL) OR (received = size)))
);
CREATE SEQUENCE public.uploads_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.uploads_id_seq OWNED BY public.uploads.id;
CREATE TABLE public.users (
    id integer NOT NULL,
    name character varying(200) NOT NULL,
    role character varying(20) NOT NULL,
    password text,
    created timestamp with time zone NOT NULL,
    ended timestamp with time zone,
    last_login timestamp with time zone,
    CONSTRAINT ck_users_role CHECK (((role)::text = ANY ((ARRAY['viewer'::character varying, 'annotator'::character varying, 'adjudicator'::character varying, 'admin'::character varying])::text[])))
);
CREATE SEQUENCE public.users_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.users_id_seq OWNED BY public.users.id;
CREATE TABLE public.verifications (
    id integer NOT NULL,
    repo character varying(200) NOT NULL,
    revision character varying(200) NOT NULL,
    fingerprint character varying(200) NOT NULL,
    dtype character varying(20) NOT NULL,
    part character varying(20) NOT NULL,
    traces integer NOT NULL,
    whole boolean NOT NULL,
    threshold double precision NOT NULL,
    f1 double precision NOT NULL,
    low double precision,
    high double precision,
    published double precision,
    created timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.verifications_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.verifications_id_seq OWNED BY public.verifications.id;
CREATE TABLE public.views (
    id integer NOT NULL,
    user_id integer NOT NULL,
    name character varying(200) NOT NULL,
    dataset character varying(200) NOT NULL,
    query text NOT NULL,
    created timestamp with time zone NOT NULL
);
CREATE SEQUENCE public.views_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.views_id_seq OWNED BY public.views.id;
ALTER TABLE ONLY public.calibrations ALTER COLUMN id SET DEFAULT nextval('public.calibrations_id_seq'::regclass);
ALTER TABLE ONLY public.campaign_items ALTER COLUMN id SET DEFAULT nextval('public.campaign_items_id_seq'::regclass);
ALTER TABLE ONLY public.campaigns ALTER COLUMN id SET DEFAULT nextval('public.campaigns_id_seq'::regclass);
ALTER TABLE ONLY public.datasets ALTER COLUMN id SET DEFAULT nextval('public.datasets_id_seq'::regclass);
ALTER TABLE ONLY public.dispute_entries ALTER COLUMN id SET DEFAULT nextval('public.dispute_entries_id_seq'::regclass);
ALTER TABLE ONLY public.disputes ALTER COLUMN id SET DEFAULT nextval('public.disputes_id_seq'::regclass);
ALTER TABLE ONLY public.evaluators ALTER COLUMN id SET DEFAULT nextval('public.evaluators_id_seq'::regclass);
ALTER TABLE ONLY public.failed_logins ALTER COLUMN id SET DEFAULT nextval('public.failed_logins_id_seq'::regclass);
ALTER TABLE ONLY public.invitations ALTER COLUMN id SET DEFAULT nextval('public.invitations_id_seq'::regclass);
ALTER TABLE ONLY public.jobs ALTER COLUMN id SET DEFAULT nextval('public.jobs_id_seq'::regclass);
ALTER TABLE ONLY public.judgments ALTER COLUMN id SET DEFAULT nextval('public.judgments_id_seq'::regclass);
ALTER TABLE ONLY public.label_events ALTER COLUMN id SET DEFAULT nextval('public.label_events_id_seq'::regclass);
ALTER TABLE ONLY public.slots ALTER COLUMN id SET DEFAULT nextval('public.slots_id_seq'::regclass);
ALTER TABLE ONLY public.traces ALTER COLUMN id SET DEFAULT nextval('public.traces_id_seq'::regclass);
ALTER TABLE ONLY public.uploads ALTER COLUMN id SET DEFAULT nextval('public.uploads_id_seq'::regclass);
ALTER TABLE ONLY public.users ALTER COLUMN id SET DEFAULT nextval('public.users_id_seq'::regclass);
ALTER TABLE ONLY public.verifications ALTER COLUMN id SET DEFAULT nextval('public.verifications_id_seq'::regclass);
ALTER TABLE ONLY public.views ALTER COLUMN id SET DEFAULT nextval('public.views_id_seq'::regclass);
INSERT INTO public.alembic_version VALUES ('0020_version_1');
INSERT INTO public.calibrations VALUES (1, 1, 1, 'sums', 0.375, 0.2, '{"metric": "f1", "threshold": "validity"}', '2026-03-01 09:00:19+00');
INSERT INTO public.campaign_annotators VALUES (2, 3, '2026-03-01 09:01:11+00', 1);
INSERT INTO public.campaign_annotators VALUES (2, 5, '2026-03-01 09:01:27+00', 1);
INSERT INTO public.campaign_items VALUES (1, 1, 1, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 0, 'ordered', 'c53dc2fcc7f32b8bf2b03750e698f86013a31f3207514f4394cee474e03c69c1');
INSERT INTO public.campaign_items VALUES (2, 1, 2, 'c6b988a9af71de8c95b698ceaf9f490b18fc62b343d133507e7a719736a03663', 1, 'ordered', 'cec539cadbce451b7b72839597f6b2618807b81b82a9acedc76057a351522f87');
INSERT INTO public.campaign_items VALUES (3, 1, 3, 'bcca4d774a484c3932c8462f8b72060bddf3ad2aa539849b3c9447d80c9ebe52', 2, 'ordered', '13568b334395977ab61fa541a7ede9bd5a9347d32b362eb1feb0ede1dadc755c');
INSERT INTO public.campaign_items VALUES (4, 1, 4, 'b2e9c88a47569eb763c6857df276128b53a90dea05dbc1a7a8a21374cb1bddc6', 3, 'ordered', '265a8f3f370ed10850c0d0bbc1c1f27f70a04c37b5d6223612b9c612c42aa19c');
INSERT INTO public.campaign_items VALUES (5, 1, 5, 'f6a0806368260ca110838aa7cc8df5e077af65d4f172063242ab4076929fe978', 4, 'gold', '2c3f3c1d62cf89007679d68ea09895d53fdc9e0c35d34abcfa789b6f79bb1bbf');
INSERT INTO public.campaign_items VALUES (6, 2, 1, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 0, 'ordered', 'c53dc2fcc7f32b8bf2b03750e698f86013a31f3207514f4394cee474e03c69c1');
INSERT INTO public.campaign_items VALUES (7, 2, 3, 'bcca4d774a484c3932c8462f8b72060bddf3ad2aa539849b3c9447d80c9ebe52', 1, 'ordered', '13568b334395977ab61fa541a7ede9bd5a9347d32b362eb1feb0ede1dadc755c');
INSERT INTO public.campaigns VALUES (1, 'blind', 1, '{}', 2, true, 'stepwise', 'nothing', NULL, 'file', 0.2, 0.5, 1800, 0, '2026-03-01 09:00:21+00', 1, NULL, true, false, '["calculation", "misreading", "wrong method", "unjustified", "contradiction", "missing case", "other"]', 'everything', NULL, NULL, false, false);
INSERT INTO public.campaigns VALUES (2, 'shown', 1, '{}', 1, true, 'whole', 'scores', 1, 'file', 0.2, 0, 1800, 0, '2026-03-01 09:01:09+00', 1, NULL, true, true, '["calculation", "misreading", "wrong method", "unjustified", "contradiction", "missing case", "other"]', 'everything', 2, 4, true, true);
INSERT INTO public.datasets VALUES (1, 'sums', 'plain', 'sums.jsonl', '618c667b8d95d5d983ba310546170dccb48a16b5cd15cda8b13643b65d9edde3', '2026-03-01 09:00:05+00', 1);
INSERT INTO public.datasets VALUES (2, 'control', 'plain', 'control.jsonl', 'a688dacc8f6cf561a3da4e82c608959a02764f50733f74bab5a7363890aae517', '2026-03-01 09:00:06+00', 1);
INSERT INTO public.dispute_entries VALUES (1, 1, 1, 'accepted', 'So it is.', '2026-03-01 09:01:31+00');
INSERT INTO public.disputes VALUES (1, 1, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 1, 'neg', 'pos', 'It is right.', 2, '2026-03-01 09:01:30+00');
INSERT INTO public.evaluators VALUES (1, 'mini', 'of mini', 'stepsight', 'bidirectional', '{"thresholds": {"validity": 0.4, "redundancy": 0.2}, "parameters": 1234, "files": {"a": "b"}}', '2026-03-01 09:00:07+00');
INSERT INTO public.evaluators VALUES (2, 'causal', 'of causal', 'stepsight', 'causal', '{}', '2026-03-01 09:00:08+00');
INSERT INTO public.evaluators VALUES (3, 'binary', 'of binary', 'imported', 'unknown', '{"outputs": "validity"}', '2026-03-01 09:00:09+00');
INSERT INTO public.evaluators VALUES (4, 'verdicts', 'of verdicts', 'imported', 'unknown', '{"outputs": "verdict"}', '2026-03-01 09:00:10+00');
INSERT INTO public.exposures VALUES (3, 'c53dc2fcc7f32b8bf2b03750e698f86013a31f3207514f4394cee474e03c69c1', 'equations', '2026-03-01 09:01:15+00');
INSERT INTO public.exposures VALUES (3, 'c53dc2fcc7f32b8bf2b03750e698f86013a31f3207514f4394cee474e03c69c1', 'scores', '2026-03-01 09:01:16+00');
INSERT INTO public.exposures VALUES (2, 'cec539cadbce451b7b72839597f6b2618807b81b82a9acedc76057a351522f87', 'gold', '2026-03-01 09:01:39+00');
INSERT INTO public.exposures VALUES (2, 'cec539cadbce451b7b72839597f6b2618807b81b82a9acedc76057a351522f87', 'scores', '2026-03-01 09:01:40+00');
INSERT INTO public.failed_logins VALUES (1, 'name of nobody', '2026-03-01 09:01:31+00');
INSERT INTO public.guidelines VALUES (1, 1, 'Is it right?', '2026-03-01 09:00:22+00', 1);
INSERT INTO public.guidelines VALUES (1, 2, 'Is it right, and why?', '2026-03-01 09:00:23+00', 1);
INSERT INTO public.guidelines VALUES (2, 1, 'Is it right?', '2026-03-01 09:01:10+00', 1);
INSERT INTO public.homes VALUES ('ada at home', '2026-03-01 09:01:37+00');
INSERT INTO public.invitation_campaigns VALUES (1, 2);
INSERT INTO public.invitations VALUES (1, 'a2c48ccface1a1e124e0576a18b5b820e0d847d1dba560e33cdc74445fd372b9', 'dora', 'annotator', NULL, '2026-03-01 09:01:23+00', 1, '2026-03-08 09:01:22+00', '2026-03-01 09:01:25+00', NULL);
INSERT INTO public.invitations VALUES (2, '1f6bd700e67d8e5f97a9aedfcd00bd88af4682a0e3682307c4b1b9129d1e858b', NULL, 'viewer', NULL, '2026-03-01 09:01:29+00', 1, '2026-03-08 09:01:28+00', NULL, NULL);
INSERT INTO public.jobs VALUES (1, 'judge', '', 'null', 1, 'mini', 'mini', 'of mini', 'hindsight', 'queued', 4, 0, 0, 0, 0, '', NULL, '2026-03-01 09:01:41+00', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (2, 'import', 'MR-MATH, invalid steps with the scores of 12 evaluators', '{"benchmark": "mr-math-invalid", "scores": true}', NULL, NULL, NULL, NULL, NULL, 'queued', 0, 0, 0, 0, 0, '', NULL, '2026-03-01 09:01:42+00', NULL, NULL, NULL);
INSERT INTO public.jobs VALUES (3, 'fetch', 'lab/prm', '{"repo": "lab/prm", "revision": "cccccccccccccccccccccccccccccccccccccccc", "parts": {}}', NULL, NULL, NULL, NULL, NULL, 'queued', 15200000000, 0, 0, 0, 0, '', NULL, '2026-03-01 09:01:43+00', NULL, NULL, NULL);
INSERT INTO public.judged VALUES (1, 1, 2);
INSERT INTO public.judged VALUES (1, 2, 1);
INSERT INTO public.judged VALUES (1, 3, 1);
INSERT INTO public.judged VALUES (1, 4, 1);
INSERT INTO public.judgments VALUES (1, 1, 1, 1, 'hindsight', 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', '\xfe79ca3e08d0173f2dbe3c3ca49d223e76fb3a3de0a84b3fd474243e521a4f3d26f1493f9d3e1a3e6fee813e2179183f73335e3e0982be3e3d64d23ed1a6883ebb96403ee9860b3f', 0.7331023216247559, 0.372085839509964, 0.6045380234718323, 0.5930180549621582, 0.24483245611190796, '2026-03-01 09:00:11+00', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (2, 2, 1, 1, 'hindsight', 'c6b988a9af71de8c95b698ceaf9f490b18fc62b343d133507e7a719736a03663', '\xfe79ca3e08d0173f2dbe3c3ca49d223e76fb3a3de0a84b3fd474243e521a4f3d26f1493f9d3e1a3e6fee813e2179183f73335e3e0982be3e3d64d23ed1a6883ebb96403ee9860b3f', 0.7331023216247559, 0.372085839509964, 0.6045380234718323, 0.5930180549621582, 0.24483245611190796, '2026-03-01 09:00:12+00', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (3, 3, 1, 1, 'hindsight', 'bcca4d774a484c3932c8462f8b72060bddf3ad2aa539849b3c9447d80c9ebe52', '\xfe79ca3e08d0173f2dbe3c3ca49d223e76fb3a3de0a84b3fd474243e521a4f3d26f1493f', 0.8393980860710144, 0.050562210381031036, 0.6045380234718323, 0.5930180549621582, 0.2366575002670288, '2026-03-01 09:00:13+00', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (5, 1, 1, 1, 'offline', 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', '\x24e3fb3e483b3e3e38ffa43e646b083f1aa0f83c379fdf3ec0a8493f0abb103eef43913d', 0.2122688591480255, 0.18577301502227783, NULL, NULL, NULL, '2026-03-01 09:00:15+00', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (6, 2, 1, 2, 'online', 'c6b988a9af71de8c95b698ceaf9f490b18fc62b343d133507e7a719736a03663', '\x1b6a9d3e9517e43ea0fc7c3e0f5b4c3e909b3c3d831f413fd2513c3b5bdf533f4c912d3e', 0.6925498247146606, 0.8276268839836121, NULL, NULL, NULL, '2026-03-01 09:00:16+00', 0.25, NULL, '\x0000003e0000003e0000003e', NULL);
INSERT INTO public.judgments VALUES (7, 1, 1, 3, 'offline', 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', '\x6666663f00000000cdcccc3d0000003f000000000000003fd0cccc3d000000006666663f', 0.10000000149011612, 0, NULL, NULL, NULL, '2026-03-01 09:00:17+00', NULL, NULL, NULL, NULL);
INSERT INTO public.judgments VALUES (8, 3, 1, 4, 'offline', 'bcca4d774a484c3932c8462f8b72060bddf3ad2aa539849b3c9447d80c9ebe52', '\x0000803f0000000000000000000000000000000000000000', 0, 0, NULL, NULL, NULL, '2026-03-01 09:00:18+00', 0, '3 + 3 is 6, not 7.', NULL, '{"calls": 2, "unread": 1, "prompt_tokens": 300, "completion_tokens": 40}');
INSERT INTO public.judgments VALUES (4, 4, 1, 1, 'hindsight', 'earlier', '\xfe79ca3e08d0173f2dbe3c3ca49d223e76fb3a3de0a84b3fd474243e521a4f3d26f1493f', 0.8393980860710144, 0.050562210381031036, 0.6045380234718323, 0.5930180549621582, 0.2366575002670288, '2026-03-01 09:00:14+00', NULL, NULL, NULL, NULL);
INSERT INTO public.label_events VALUES (1, 1, 5, 9, 2, 'label', 0, NULL, '"unsure"', '', NULL, 'label-0-9-unsure', '2026-03-01 09:00:27+00', 1.5, 'f6a0806368260ca110838aa7cc8df5e077af65d4f172063242ab4076929fe978', 2, 'stepwise', 1, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (2, 1, 5, 9, 2, 'label', 0, '"unsure"', '"pos"', '', NULL, 'label-0-9-pos', '2026-03-01 09:00:29+00', 1.5, 'f6a0806368260ca110838aa7cc8df5e077af65d4f172063242ab4076929fe978', 2, 'stepwise', 1, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (3, 1, 5, 9, 2, 'comment', 0, NULL, '"Ünsure ∑ <b>"', '', NULL, 'comment-0-9-nsure__<b>', '2026-03-01 09:00:31+00', 1.5, 'f6a0806368260ca110838aa7cc8df5e077af65d4f172063242ab4076929fe978', 2, 'stepwise', 1, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (4, 1, 5, 9, 2, 'comment', 0, '"Ünsure ∑ <b>"', NULL, 'undo', 3, 'undo', '2026-03-01 09:00:33+00', NULL, 'f6a0806368260ca110838aa7cc8df5e077af65d4f172063242ab4076929fe978', 2, 'stepwise', 1, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (5, 1, 5, 9, 2, 'submit', NULL, NULL, NULL, '', NULL, 'submit-None-9-None', '2026-03-01 09:00:35+00', 1.5, 'f6a0806368260ca110838aa7cc8df5e077af65d4f172063242ab4076929fe978', 2, 'stepwise', 1, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (6, 1, 1, 1, 2, 'label', 0, NULL, '"pos"', '', NULL, 'label-0-1-pos', '2026-03-01 09:00:40+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 1, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (7, 1, 1, 1, 2, 'reveal', NULL, '1', '2', '', NULL, 'reveal-None-1-2', '2026-03-01 09:00:42+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 1, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (8, 1, 1, 1, 2, 'label', 1, NULL, '"pos"', '', NULL, 'label-1-1-pos', '2026-03-01 09:00:44+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 2, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (9, 1, 1, 1, 2, 'submit', NULL, NULL, NULL, '', NULL, 'submit-None-1-None', '2026-03-01 09:00:46+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 2, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (10, 1, 1, 2, 3, 'label', 0, NULL, '"neg"', '', NULL, 'label-0-2-neg', '2026-03-01 09:00:51+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 1, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (11, 1, 1, 2, 3, 'reveal', NULL, '1', '2', '', NULL, 'reveal-None-2-2', '2026-03-01 09:00:53+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 1, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (12, 1, 1, 2, 3, 'label', 1, NULL, '"neg"', '', NULL, 'label-1-2-neg', '2026-03-01 09:00:55+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 2, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (13, 1, 1, 2, 3, 'error', 1, NULL, '"calculation"', '', NULL, 'error-1-2-calculation', '2026-03-01 09:00:57+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 2, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (14, 1, 1, 2, 3, 'correction', 1, NULL, '"1 + 1 = 2"', '', NULL, 'correction-1-2-1_+_1_=_2', '2026-03-01 09:00:59+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 2, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (15, 1, 1, 2, 3, 'submit', NULL, NULL, NULL, '', NULL, 'submit-None-2-None', '2026-03-01 09:01:01+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', 2, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (16, 1, 1, NULL, 1, 'decide', 0, NULL, '{"label": "neg", "reason": "It is wrong.", "own": false}', '', NULL, 'decision-1', '2026-03-01 09:01:03+00', NULL, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 'stepwise', NULL, '{"scores": false, "gold": false, "labels": true, "equations": false}');
INSERT INTO public.label_events VALUES (17, 1, 2, 3, 2, 'flag', NULL, NULL, '"odd"', '', NULL, 'flag-None-3-odd', '2026-03-01 09:01:07+00', 1.5, 'c6b988a9af71de8c95b698ceaf9f490b18fc62b343d133507e7a719736a03663', 2, 'stepwise', 1, '{"scores": false, "gold": false, "labels": false, "equations": false, "own": false}');
INSERT INTO public.label_events VALUES (18, 2, 6, 10, 3, 'suggest', NULL, NULL, '["pos", "neg"]', '', NULL, 'suggest-10', '2026-03-01 09:01:17+00', NULL, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 1, 'whole', NULL, '{"scores": true, "gold": false, "labels": false, "equations": true, "own": true}');
INSERT INTO public.label_events VALUES (19, 2, 6, 10, 3, 'label', 0, '"pos"', '"neg"', '', NULL, 'label-0-10-neg', '2026-03-01 09:01:18+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 1, 'whole', NULL, '{"scores": true, "gold": false, "labels": false, "equations": true, "own": true}');
INSERT INTO public.label_events VALUES (20, 2, 6, 10, 3, 'skip', NULL, NULL, '"Too hard."', '', NULL, 'skip-None-10-Too_hard.', '2026-03-01 09:01:20+00', 1.5, 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 1, 'whole', NULL, '{"scores": true, "gold": false, "labels": false, "equations": true, "own": true}');
INSERT INTO public.left_out VALUES (1, 'af71a56c8bcf853d87860b0410b698555f213b945074a0a22f20ac7bdfded2a4', 'sums.jsonl', 'line 5', 'there are no steps. Give at least one step.');
INSERT INTO public.logins VALUES ('58966d7d4f4302039a0bba62ed090894f8b13796b09b463e5fc9ec6613f7532e', 1, '2026-03-01 09:01:35+00', '2026-03-15 09:01:33+00');
INSERT INTO public.profiles VALUES (1, 1, 'hindsight', 1, '\x636430383332313837653738396336380000c07f08d0173f5cb57a3e8400010001c31a3f98ac3b3f', '\x636430383332313837653738396336380000c07f0982be3e5cb57a3e040101005870593f98ac3b3f');
INSERT INTO public.profiles VALUES (1, 1, 'hindsight', 2, '\x633662393838613961663731646538630000c07f08d0173f5cb57a3ea001010001c31a3fcbe2563f98ac3b3f', '\x633662393838613961663731646538630000c07f0982be3e5cb57a3e200101005870593f2373483f98ac3b3f');
INSERT INTO public.profiles VALUES (1, 1, 'hindsight', 3, '\x626363613464373734613438346333390000c07f08d0173f5856723e0000000001c31a3fcbe2563f', '\x626363613464373734613438346333390000c07f521a4f3d5856723e000000009758573fcbe2563f');
INSERT INTO public.profiles VALUES (1, 1, 'hindsight', 4, '\x623265396338386134373536396562370000c07f08d0173f5856723e0200010001c31a3fcbe2563f', '\x623265396338386134373536396562370000c07f521a4f3d5856723e040001009758573fcbe2563f');
INSERT INTO public.profiles VALUES (1, 1, 'offline', 1, NULL, '\x636430383332313837653738396336380000c07f483b3e3e0000c07f410001006e0e023f025d593e');
INSERT INTO public.profiles VALUES (2, 1, 'online', 2, '\x633662393838613961663731646538630000803e5bdf533f0000c07fa0000100f24a313f3ce94c3fae437f3f', NULL);
INSERT INTO public.profiles VALUES (3, 1, 'offline', 1, NULL, '\x636430383332313837653738396336380000c07f000000000000c07f41000100cdcccc3d0000003f');
INSERT INTO public.profiles VALUES (4, 1, 'offline', 3, NULL, '\x6263636134643737346134383463333900000000000000000000c07f00000000000000000000c07f');
INSERT INTO public.server_secrets VALUES ('pseudonyms', '\x6f6620746865207465737473');
INSERT INTO public.slots VALUES (4, 1, 2, 1, 'free', NULL, NULL, NULL, NULL, 'fef232ff3efa2f57');
INSERT INTO public.slots VALUES (5, 1, 3, 0, 'free', NULL, NULL, NULL, NULL, '053b0b4b56564c68');
INSERT INTO public.slots VALUES (6, 1, 3, 1, 'free', NULL, NULL, NULL, NULL, 'fee73f8aa1f8f13f');
INSERT INTO public.slots VALUES (7, 1, 4, 0, 'free', NULL, NULL, NULL, NULL, '22faeca8c4e1d4f0');
INSERT INTO public.slots VALUES (8, 1, 4, 1, 'free', NULL, NULL, NULL, NULL, '7685aa972af9f500');
INSERT INTO public.slots VALUES (9, 1, 5, 0, 'submitted', 2, '2026-03-01 09:00:26+00', NULL, '2026-03-01 09:00:36+00', 'ab3a9a07b3ce9654');
INSERT INTO public.slots VALUES (1, 1, 1, 0, 'submitted', 2, '2026-03-01 09:00:39+00', NULL, '2026-03-01 09:00:47+00', 'ce62ebc1db7f0a96');
INSERT INTO public.slots VALUES (2, 1, 1, 1, 'submitted', 3, '2026-03-01 09:00:50+00', NULL, '2026-03-01 09:01:02+00', '4c120b24107296cc');
INSERT INTO public.slots VALUES (3, 1, 2, 0, 'leased', 2, '2026-03-01 09:01:06+00', '2026-03-01 09:31:08+00', NULL, '2f754a013b0f8f49');
INSERT INTO public.slots VALUES (11, 2, 7, 0, 'free', NULL, NULL, NULL, NULL, 'f27f64b86f5a2443');
INSERT INTO public.slots VALUES (10, 2, 6, 0, 'skipped', 3, '2026-03-01 09:01:14+00', NULL, '2026-03-01 09:01:21+00', '1094bf84d750102f');
INSERT INTO public.slots VALUES (12, 2, 6, 1, 'free', NULL, NULL, NULL, NULL, 'c999a0ef26e6b3cd');
INSERT INTO public.steps VALUES (1, 0, 2, true);
INSERT INTO public.steps VALUES (1, 1, 0, false);
INSERT INTO public.steps VALUES (2, 0, 2, true);
INSERT INTO public.steps VALUES (2, 1, 1, true);
INSERT INTO public.steps VALUES (2, 2, 2, true);
INSERT INTO public.steps VALUES (3, 0, NULL, NULL);
INSERT INTO public.steps VALUES (3, 1, NULL, NULL);
INSERT INTO public.steps VALUES (4, 0, 0, false);
INSERT INTO public.steps VALUES (4, 1, NULL, NULL);
INSERT INTO public.steps VALUES (5, 0, 2, true);
INSERT INTO public.substeps VALUES (1, 0, 0, 'A sum.');
INSERT INTO public.substeps VALUES (1, 1, 0, 'So 1 + 1 = 3.');
INSERT INTO public.substeps VALUES (1, 1, 1, 'Done.');
INSERT INTO public.substeps VALUES (2, 0, 0, 'It is 4.');
INSERT INTO public.substeps VALUES (2, 1, 0, 'Nice.');
INSERT INTO public.substeps VALUES (2, 2, 0, 'So 4.');
INSERT INTO public.substeps VALUES (3, 0, 0, 'It is 6.');
INSERT INTO public.substeps VALUES (3, 1, 0, 'Yes.');
INSERT INTO public.substeps VALUES (4, 0, 0, 'It is 9.');
INSERT INTO public.substeps VALUES (4, 1, 0, 'So 9.');
INSERT INTO public.substeps VALUES (5, 0, 0, 'It is 10.');
INSERT INTO public.traces VALUES (1, 1, 'error', 0, 'What is $1 + 1$?', 'cd0832187e789c6838e264bb7264d6293fa185623c5fc5bf2374d20fbfbc6668', 2, 3, 1, true, 0, '{"level": 2, "generator": "hand", "answer": "2"}', 'c53dc2fcc7f32b8bf2b03750e698f86013a31f3207514f4394cee474e03c69c1');
INSERT INTO public.traces VALUES (2, 1, 'clean', 1, 'Was ist 2 + 2 = ∑?', 'c6b988a9af71de8c95b698ceaf9f490b18fc62b343d133507e7a719736a03663', 3, 3, NULL, true, 1, '{}', 'cec539cadbce451b7b72839597f6b2618807b81b82a9acedc76057a351522f87');
INSERT INTO public.traces VALUES (3, 1, 'unlabelled', 2, 'What is 3 + 3?', 'bcca4d774a484c3932c8462f8b72060bddf3ad2aa539849b3c9447d80c9ebe52', 2, 2, NULL, false, 0, '{}', '13568b334395977ab61fa541a7ede9bd5a9347d32b362eb1feb0ede1dadc755c');
INSERT INTO public.traces VALUES (4, 1, 'part', 3, 'What is 4 + 4?', 'b2e9c88a47569eb763c6857df276128b53a90dea05dbc1a7a8a21374cb1bddc6', 2, 2, 0, true, 0, '{}', '265a8f3f370ed10850c0d0bbc1c1f27f70a04c37b5d6223612b9c612c42aa19c');
INSERT INTO public.traces VALUES (5, 2, 'gold', 0, 'What is 5 + 5?', 'f6a0806368260ca110838aa7cc8df5e077af65d4f172063242ab4076929fe978', 1, 1, NULL, true, 0, '{}', '2c3f3c1d62cf89007679d68ea09895d53fdc9e0c35d34abcfa789b6f79bb1bbf');
INSERT INTO public.upload_parts VALUES (1, 0, '\x7b2270726f626c656d223a202271222c20227374657073223a205b2261225d7d0a');
INSERT INTO public.uploads VALUES (1, 1, 'traces.jsonl', 66, 'today', 33, NULL, '2026-03-01 09:01:46+00', '2026-03-01 09:01:47+00');
INSERT INTO public.users VALUES (2, 'ben', 'annotator', NULL, '2026-03-01 09:00:01+00', NULL, NULL);
INSERT INTO public.users VALUES (3, 'cleo', 'annotator', NULL, '2026-03-01 09:00:02+00', NULL, NULL);
INSERT INTO public.users VALUES (4, 'gone', 'viewer', NULL, '2026-03-01 09:00:03+00', '2026-03-01 09:00:04+00', NULL);
INSERT INTO public.users VALUES (5, 'dora', 'annotator', '$argon2id$v=19$m=65536,t=3,p=4$kY2MUhEMy2lS05epV+soiQ$Hs6HTsMXwPhyK7YXd5GYvYqS36lcyspJ64KKJGGLBog', '2026-03-01 09:01:26+00', NULL, NULL);
INSERT INTO public.users VALUES (1, 'ada', 'admin', '$argon2id$v=19$m=65536,t=3,p=4$qbPrSJHUeICmdSNJAMgLhg$nePkkSggmcbbbWkOqUe1nJGxVynidekfC3lhJPrVct8', '2026-03-01 09:00:00+00', NULL, '2026-03-01 09:01:34+00');
INSERT INTO public.verifications VALUES (1, 'lab/prm', 'cccccccccccccccccccccccccccccccccccccccc', 'of mini', 'bfloat16', 'gsm8k', 400, true, 0.5, 61, 58, 64, 60.5, '2026-03-01 09:00:20+00');
INSERT INTO public.views VALUES (1, 1, 'wrong ones', 'sums', 'dataset=1&evaluator=1&verdict=invalid', '2026-03-01 09:01:38+00');
SELECT pg_catalog.setval('public.calibrations_id_seq', 1, true);
SELECT pg_catalog.setval('public.campaign_items_id_seq', 7, true);
SELECT pg_catalog.setval('public.campaigns_id_seq', 2, true);
SELECT pg_catalog.setval('public.datasets_id_seq', 2, true);
SELECT pg_catalog.setval('public.dispute_entries_id_seq', 1, true);
SELECT pg_catalog.setval('public.disputes_id_seq', 1, true);
SELECT pg_catalog.setval('public.evaluators_id_seq', 4, true);
SELECT pg_catalog.setval('public.failed_logins_id_seq', 1, true);
SELECT pg_catalog.setval('public.invitations_id_seq', 2, true);
SELECT pg_catalog.setval('public.jobs_id_seq', 3, true);
SELECT pg_catalog.setval('public.judgments_id_seq', 8, true);
SELECT pg_catalog.setval('public.label_events_id_seq', 20, true);
SELECT pg_catalog.setval('public.slots_id_seq', 12, true);
SELECT pg_catalog.setval('public.traces_id_seq', 5, true);
SELECT pg_catalog.setval('public.uploads_id_seq', 1, true);
SELECT pg_catalog.setval('public.users_id_seq', 5, true);
SELECT pg_catalog.setval('public.verifications_id_seq', 1, true);
SELECT pg_catalog.setval('public.views_id_seq', 1, true);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.calibrations
    ADD CONSTRAINT pk_calibrations PRIMARY KEY (id);
ALTER TABLE ONLY public.campaign_annotators
    ADD CONSTRAINT pk_campaign_annotators PRIMARY KEY (campaign_id, user_id);
ALTER TABLE ONLY public.campaign_items
    ADD CONSTRAINT pk_campaign_items PRIMARY KEY (id);
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT pk_campaigns PRIMARY KEY (id);
ALTER TABLE ONLY public.datasets
    ADD CONSTRAINT pk_datasets PRIMARY KEY (id);
ALTER TABLE ONLY public.dispute_entries
    ADD CONSTRAINT pk_dispute_entries PRIMARY KEY (id);
ALTER TABLE ONLY public.disputes
    ADD CONSTRAINT pk_disputes PRIMARY KEY (id);
ALTER TABLE ONLY public.evaluators
    ADD CONSTRAINT pk_evaluators PRIMARY KEY (id);
ALTER TABLE ONLY public.exposures
    ADD CONSTRAINT pk_exposures PRIMARY KEY (user_id, text_digest, what);
ALTER TABLE ONLY public.failed_logins
    ADD CONSTRAINT pk_failed_logins PRIMARY KEY (id);
ALTER TABLE ONLY public.guidelines
    ADD CONSTRAINT pk_guidelines PRIMARY KEY (campaign_id, version);
ALTER TABLE ONLY public.homes
    ADD CONSTRAINT pk_homes PRIMARY KEY (key);
ALTER TABLE ONLY public.invitation_campaigns
    ADD CONSTRAINT pk_invitation_campaigns PRIMARY KEY (invitation_id, campaign_id);
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT pk_invitations PRIMARY KEY (id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT pk_jobs PRIMARY KEY (id);
ALTER TABLE ONLY public.judged
    ADD CONSTRAINT pk_judged PRIMARY KEY (dataset_id, evaluator_id);
ALTER TABLE ONLY public.judgments
    ADD CONSTRAINT pk_judgments PRIMARY KEY (id);
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT pk_label_events PRIMARY KEY (id);
ALTER TABLE ONLY public.left_out
    ADD CONSTRAINT pk_left_out PRIMARY KEY (dataset_id, digest);
ALTER TABLE ONLY public.logins
    ADD CONSTRAINT pk_logins PRIMARY KEY (digest);
ALTER TABLE ONLY public.profiles
    ADD CONSTRAINT pk_profiles PRIMARY KEY (evaluator_id, dataset_id, mode, trace_id);
ALTER TABLE ONLY public.server_secrets
    ADD CONSTRAINT pk_server_secrets PRIMARY KEY (name);
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT pk_slots PRIMARY KEY (id);
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT pk_steps PRIMARY KEY (trace_id, "position");
ALTER TABLE ONLY public.substeps
    ADD CONSTRAINT pk_substeps PRIMARY KEY (trace_id, step, "position");
ALTER TABLE ONLY public.traces
    ADD CONSTRAINT pk_traces PRIMARY KEY (id);
ALTER TABLE ONLY public.upload_parts
    ADD CONSTRAINT pk_upload_parts PRIMARY KEY (upload_id, start);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT pk_uploads PRIMARY KEY (id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT pk_users PRIMARY KEY (id);
ALTER TABLE ONLY public.verifications
    ADD CONSTRAINT pk_verifications PRIMARY KEY (id);
ALTER TABLE ONLY public.views
    ADD CONSTRAINT pk_views PRIMARY KEY (id);
ALTER TABLE ONLY public.campaign_items
    ADD CONSTRAINT uq_campaign_items_campaign_id_place UNIQUE (campaign_id, place);
ALTER TABLE ONLY public.campaign_items
    ADD CONSTRAINT uq_campaign_items_campaign_id_trace_id UNIQUE (campaign_id, trace_id);
ALTER TABLE ONLY public.campaign_items
    ADD CONSTRAINT uq_campaign_items_id_campaign_id UNIQUE (id, campaign_id);
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT uq_campaigns_name UNIQUE (name);
ALTER TABLE ONLY public.datasets
    ADD CONSTRAINT uq_datasets_name UNIQUE (name);
ALTER TABLE ONLY public.evaluators
    ADD CONSTRAINT uq_evaluators_fingerprint UNIQUE (fingerprint);
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT uq_invitations_digest UNIQUE (digest);
ALTER TABLE ONLY public.judgments
    ADD CONSTRAINT uq_judgments_trace_id_evaluator_id_mode UNIQUE (trace_id, evaluator_id, mode);
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT uq_label_events_user_id_key UNIQUE (user_id, key);
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT uq_slots_item_id_number UNIQUE (item_id, number);
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT uq_slots_item_id_user_id UNIQUE (item_id, user_id);
ALTER TABLE ONLY public.traces
    ADD CONSTRAINT uq_traces_dataset_id_external_id UNIQUE (dataset_id, external_id);
ALTER TABLE ONLY public.traces
    ADD CONSTRAINT uq_traces_dataset_id_position UNIQUE (dataset_id, "position");
ALTER TABLE ONLY public.traces
    ADD CONSTRAINT uq_traces_id_dataset_id UNIQUE (id, dataset_id);
ALTER TABLE ONLY public.users
    ADD CONSTRAINT uq_users_name UNIQUE (name);
ALTER TABLE ONLY public.views
    ADD CONSTRAINT uq_views_user_id_name UNIQUE (user_id, name);
CREATE INDEX ix_calibrations_evaluator_id ON public.calibrations USING btree (evaluator_id, id);
CREATE INDEX ix_campaign_items_text_digest ON public.campaign_items USING btree (text_digest, campaign_id);
CREATE INDEX ix_campaign_items_trace_id ON public.campaign_items USING btree (trace_id);
CREATE INDEX ix_dispute_entries_dispute_id ON public.dispute_entries USING btree (dispute_id, id);
CREATE INDEX ix_disputes_trace_id ON public.disputes USING btree (trace_id);
CREATE INDEX ix_failed_logins_key ON public.failed_logins USING btree (key, moment);
CREATE INDEX ix_jobs_state ON public.jobs USING btree (state, id);
CREATE UNIQUE INDEX ix_judgments_evaluator_id ON public.judgments USING btree (evaluator_id, dataset_id, mode, trace_id);
CREATE INDEX ix_label_events_campaign_id ON public.label_events USING btree (campaign_id, id);
CREATE INDEX ix_label_events_item_id ON public.label_events USING btree (item_id, id);
CREATE INDEX ix_label_events_slot_id ON public.label_events USING btree (slot_id, id);
CREATE INDEX ix_logins_user_id ON public.logins USING btree (user_id);
CREATE INDEX ix_search_problem ON public.traces USING gin (public.search_trigrams(problem));
CREATE INDEX ix_search_text ON public.substeps USING gin (public.search_trigrams(text));
CREATE INDEX ix_slots_campaign_id ON public.slots USING btree (campaign_id, state);
CREATE UNIQUE INDEX ix_slots_public_id ON public.slots USING btree (public_id);
CREATE INDEX ix_slots_user_id ON public.slots USING btree (user_id, campaign_id);
CREATE INDEX ix_traces_counts ON public.traces USING btree (dataset_id, first_error, has_gold, n_steps, n_substeps, n_redundant);
CREATE INDEX ix_traces_text_digest ON public.traces USING btree (text_digest);
CREATE INDEX ix_uploads_user_id ON public.uploads USING btree (user_id, id);
CREATE INDEX ix_verifications_repo ON public.verifications USING btree (repo, id);
CREATE UNIQUE INDEX uq_jobs_active ON public.jobs USING btree (dataset_id, fingerprint, mode) WHERE ((state)::text = ANY ((ARRAY['queued'::character varying, 'running'::character varying])::text[]));
CREATE TRIGGER dispute_entries_kept BEFORE DELETE OR UPDATE ON public.dispute_entries FOR EACH ROW EXECUTE FUNCTION public.keep_dispute_entries();
CREATE TRIGGER disputes_kept BEFORE DELETE OR UPDATE ON public.disputes FOR EACH ROW EXECUTE FUNCTION public.keep_disputes();
CREATE TRIGGER guidelines_kept BEFORE DELETE OR UPDATE ON public.guidelines FOR EACH ROW EXECUTE FUNCTION public.keep_guidelines();
CREATE TRIGGER label_events_kept BEFORE DELETE OR UPDATE ON public.label_events FOR EACH ROW EXECUTE FUNCTION public.keep_label_events();
CREATE TRIGGER traces_deleted AFTER DELETE ON public.traces REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION public.note_deleted_traces();
ALTER TABLE ONLY public.calibrations
    ADD CONSTRAINT fk_calibrations_dataset_id FOREIGN KEY (dataset_id) REFERENCES public.datasets(id) ON DELETE SET NULL;
ALTER TABLE ONLY public.calibrations
    ADD CONSTRAINT fk_calibrations_evaluator_id FOREIGN KEY (evaluator_id) REFERENCES public.evaluators(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.campaign_annotators
    ADD CONSTRAINT fk_campaign_annotators_added_by FOREIGN KEY (added_by) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaign_annotators
    ADD CONSTRAINT fk_campaign_annotators_campaign_id FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaign_annotators
    ADD CONSTRAINT fk_campaign_annotators_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaign_items
    ADD CONSTRAINT fk_campaign_items_campaign_id FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaign_items
    ADD CONSTRAINT fk_campaign_items_trace_id FOREIGN KEY (trace_id) REFERENCES public.traces(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT fk_campaigns_created_by FOREIGN KEY (created_by) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT fk_campaigns_dataset_id FOREIGN KEY (dataset_id) REFERENCES public.datasets(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.campaigns
    ADD CONSTRAINT fk_campaigns_evaluator_id FOREIGN KEY (evaluator_id) REFERENCES public.evaluators(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.dispute_entries
    ADD CONSTRAINT fk_dispute_entries_dispute_id FOREIGN KEY (dispute_id) REFERENCES public.disputes(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.dispute_entries
    ADD CONSTRAINT fk_dispute_entries_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.disputes
    ADD CONSTRAINT fk_disputes_trace_id FOREIGN KEY (trace_id) REFERENCES public.traces(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.disputes
    ADD CONSTRAINT fk_disputes_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.exposures
    ADD CONSTRAINT fk_exposures_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.guidelines
    ADD CONSTRAINT fk_guidelines_campaign_id FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.guidelines
    ADD CONSTRAINT fk_guidelines_created_by FOREIGN KEY (created_by) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.invitation_campaigns
    ADD CONSTRAINT fk_invitation_campaigns_campaign_id FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.invitation_campaigns
    ADD CONSTRAINT fk_invitation_campaigns_invitation_id FOREIGN KEY (invitation_id) REFERENCES public.invitations(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT fk_invitations_created_by FOREIGN KEY (created_by) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.invitations
    ADD CONSTRAINT fk_invitations_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT fk_jobs_dataset_id FOREIGN KEY (dataset_id) REFERENCES public.datasets(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.judged
    ADD CONSTRAINT fk_judged_dataset_id FOREIGN KEY (dataset_id) REFERENCES public.datasets(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.judged
    ADD CONSTRAINT fk_judged_evaluator_id FOREIGN KEY (evaluator_id) REFERENCES public.evaluators(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.judgments
    ADD CONSTRAINT fk_judgments_evaluator_id FOREIGN KEY (evaluator_id) REFERENCES public.evaluators(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.judgments
    ADD CONSTRAINT fk_judgments_trace_id_dataset_id FOREIGN KEY (trace_id, dataset_id) REFERENCES public.traces(id, dataset_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT fk_label_events_campaign_id FOREIGN KEY (campaign_id) REFERENCES public.campaigns(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT fk_label_events_item_id FOREIGN KEY (item_id) REFERENCES public.campaign_items(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT fk_label_events_of FOREIGN KEY (of) REFERENCES public.label_events(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT fk_label_events_slot_id FOREIGN KEY (slot_id) REFERENCES public.slots(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.label_events
    ADD CONSTRAINT fk_label_events_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.left_out
    ADD CONSTRAINT fk_left_out_dataset_id FOREIGN KEY (dataset_id) REFERENCES public.datasets(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.logins
    ADD CONSTRAINT fk_logins_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.profiles
    ADD CONSTRAINT fk_profiles_evaluator_id_dataset_id_mode_trace_id FOREIGN KEY (evaluator_id, dataset_id, mode, trace_id) REFERENCES public.judgments(evaluator_id, dataset_id, mode, trace_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT fk_slots_item_id_campaign_id FOREIGN KEY (item_id, campaign_id) REFERENCES public.campaign_items(id, campaign_id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.slots
    ADD CONSTRAINT fk_slots_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE RESTRICT;
ALTER TABLE ONLY public.steps
    ADD CONSTRAINT fk_steps_trace_id FOREIGN KEY (trace_id) REFERENCES public.traces(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.substeps
    ADD CONSTRAINT fk_substeps_trace_id_step FOREIGN KEY (trace_id, step) REFERENCES public.steps(trace_id, "position") ON DELETE CASCADE;
ALTER TABLE ONLY public.traces
    ADD CONSTRAINT fk_traces_dataset_id FOREIGN KEY (dataset_id) REFERENCES public.datasets(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.upload_parts
    ADD CONSTRAINT fk_upload_parts_upload_id FOREIGN KEY (upload_id) REFERENCES public.uploads(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT fk_uploads_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.views
    ADD CONSTRAINT fk_views_user_id FOREIGN KEY (user_id) REFERENCES public.users(id) ON DELETE CASCADE;
