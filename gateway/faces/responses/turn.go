package responses

import (
	"slices"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/hook/window"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/upstream/responses"
)

// turn is one reply of the model, judged.
type turn struct {
	reply    *responses.Reply
	decision *gateway.Decision
	// text means that the first report is on the texts of the messages; refusals that the model
	// wrote and then calls follow.
	text       bool
	textInputs int               // reports before those of calls
	calls      []*responses.Item // in the order of their reports
	inputs     []gateway.Input
	texts      []byte // of the messages, one after the other
	sent       bool   // the application was sent some of the text
	dropped    bool   // messages are not shown: there are calls beside them
	// questions are the calls that the caller is asked about, where the turn ends the run for that.
	questions map[*responses.Item]*calls.Question
	approves  bool // it asks for approvals of calls at the provider, and its text passed
}

// released reports whether the texts passed.
func (t *turn) released() bool {
	return t.text && t.decision.Reports[0].Verdict == gateway.VerdictText
}

// passed is the report of a call that passed; nil: it did not.
func (t *turn) passed(item *responses.Item) *gateway.Report {
	at := slices.Index(t.calls, item)
	if reports := turns.Passed(t.decision); at >= 0 && at < len(reports) {
		return &reports[at]
	}
	return nil
}

// shows reports whether a message is shown: its texts passed, or it is a refusal of the model,
// which did.
func (t *turn) shows(item *responses.Item) bool {
	if t.dropped || t.decision == nil {
		return false
	}
	return t.released() || slices.ContainsFunc(item.Parts, func(p *responses.Part) bool { return p.Refusal })
}

// takeHooked puts what hooks have left of the texts of a reply that passed into the parts of its
// messages.
func (t *turn) takeHooked() {
	if t.decision.Refusal() != nil {
		return
	}
	var texts, refusals []*responses.Part
	for _, item := range t.reply.Items {
		for _, part := range item.Parts {
			if part.Refusal {
				refusals = append(refusals, part)
			} else {
				texts = append(texts, part)
			}
		}
	}
	reports := t.decision.Reports
	if t.text {
		putHooked(texts, &reports[0])
		reports = reports[1:]
	}
	if len(refusals) > 0 && t.textInputs > 0 && len(reports) > 0 {
		putHooked(refusals, &reports[0])
	}
}

// putHooked puts what hooks have left of a text into the parts that it was put together of.
func putHooked(parts []*responses.Part, report *gateway.Report) {
	if report.Pieces == nil {
		return
	}
	lengths := make([]int, len(parts))
	for i, part := range parts {
		lengths[i] = len(part.Text)
	}
	for i, text := range window.Divide(report.Pieces, lengths) {
		parts[i].Text = text
	}
}
