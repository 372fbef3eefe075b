package messages

import (
	"bytes"
	"context"
	"errors"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/hook/window"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	wire "github.com/callgate/callgate/upstream/messages"
)

// Hooks at texts. The text of a reply passes them in the kernel, and takeHooked puts what they left in
// its place; blocks that are shown unjudged pass them here. A stream is then sent once it has been
// judged, since citations and thinking are seen as a whole.

// hookBlocks has the hooks see what a reply has beside its text: what the model thought, citations, and
// summaries, and what the provider says around the blocks. A reply that they deny is denied.
func (r *run) hookBlocks(ctx context.Context, t *turn) {
	if t.denied != nil || !r.Admission.Hooks().AtTexts() {
		return
	}
	err := t.reply.EditHead(func(value []byte) ([]byte, error) { return r.Admission.Hooks().ModelValue(ctx, value) })
	for i := 0; i < len(t.reply.Blocks) && err == nil; i++ {
		err = r.hookBlock(ctx, &t.reply.Blocks[i])
	}
	if err != nil {
		t.denied = refusal.From(refusal.Approval, err)
	}
}

func (r *run) hookBlock(ctx context.Context, b *wire.Block) error {
	if !r.shows(b.Kind) {
		return nil
	}
	see := func(value []byte, change func(left []byte) error) error {
		left, err := r.Admission.Hooks().ModelValue(ctx, value)
		if err == nil && !bytes.Equal(left, value) {
			err = change(left)
		}
		return err
	}
	switch b.Kind {
	case wire.Text:
		if b.Citations != nil {
			return see(b.Citations, func(left []byte) error { b.SetCitations(left); return nil })
		}
	case wire.Compaction, wire.Unknown:
		return see(b.Raw, func(left []byte) error { b.Raw = left; return nil })
	case wire.Thinking:
		text, signed := b.Thinking()
		if len(text) == 0 {
			return nil
		}
		return see(rawjson.Quote(text), func(left []byte) error {
			thought, ok := rawjson.String(left)
			switch {
			case !ok:
				return errors.New("a text that is none any more")
			case signed:
				return refusal.New(refusal.HookDenied, "A hook of this gateway removes a part of the thinking of this answer, which cannot be done, since the model's provider has signed it. Answer without what must not be in it.")
			}
			b.SetThinking([]byte(thought))
			return nil
		})
	}
	return nil
}

// takeHooked puts what hooks have left of the text of a reply that passed into its blocks.
func (t *turn) takeHooked() {
	if t.texts == 0 || t.decision.Reports[0].Verdict != gateway.VerdictText || t.decision.Reports[0].Pieces == nil {
		return
	}
	var blocks []*wire.Block
	var lengths []int
	for i := range t.reply.Blocks {
		if b := &t.reply.Blocks[i]; b.Kind == wire.Text {
			blocks, lengths = append(blocks, b), append(lengths, len(b.Text))
		}
	}
	for i, text := range window.Divide(t.decision.Reports[0].Pieces, lengths) {
		blocks[i].SetText(text)
	}
}
