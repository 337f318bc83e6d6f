// The script of every page: the frame, then a module for each page. This comes before any other module changes the content: it
// notes what the server sent.
import "./shared/navigation.js";
import "./shared/maths.js";
import "./shared/keys.js";
import "./shared/hints.js";
import "./shared/frame.js";
import "./changes/changes.js";
import "./steps/long_trace.js";
import "./score/score.js";
import "./browse/browse.js";
// Its keys take precedence over those of the page from which it is opened.
import "./evidence/presentation.js";
import "./evidence/evidence.js";
import "./data/data.js";
import "./evaluators/evaluators.js";
import "./jobs/jobs.js";
import "./results/results.js";
import "./annotate/campaigns.js";
import "./annotate/labelling.js";
import "./annotate/adjudicate.js";
// After all other modules have seen the page for the first time.
import "./shared/early_input.js";
