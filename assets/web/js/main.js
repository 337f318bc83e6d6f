// The script of every page: the frame, then a module for each page.
import "./maths.js";
import "./keys.js";
import "./hints.js";
import "./navigation.js";
import "./frame.js";
import "./account.js";
import "./gradio.js";
import "./score.js";
import "./browse.js";
// Its keys stand above those of the page that it is opened from.
import "./presentation.js";
import "./evidence.js";
import "./data.js";
import "./evaluators.js";
import "./jobs.js";
import "./results.js";
import "./agreement.js";
import "./relabel.js";
import "./labelling.js";
import "./adjudicate.js";
import "./disputes.js";
// After every other has seen the page for the first time.
import "./early.js";
