package responses

import (
	"bytes"
	"context"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream/responses"
)

// Hooks at texts. Texts and refusals of a reply pass them in the kernel, and takeHooked puts what they
// left in their place; what is shown unjudged passes them here. A stream is then sent once it has been
// judged, since every place of the wire must state the same text.

// hookItems has the hooks see what a reply has beside its texts: what the model thought, and annotations.
// It returns the refusal of a reply that they deny.
func (r *run) hookItems(ctx context.Context, reply *responses.Reply) *refusal.Error {
	if !r.Admission.Hooks().AtTexts() {
		return nil
	}
	for _, item := range reply.Items {
		for _, part := range item.Parts {
			if part.Annotations == nil {
				continue
			}
			left, err := r.Admission.Hooks().ModelValue(ctx, part.Annotations)
			if err != nil {
				return refusal.From(refusal.Approval, err)
			}
			part.Annotations = left
		}
		if item.Class != responses.Reasoning || !r.shows(item) {
			continue
		}
		raw, err := r.hookReasoning(ctx, item.Raw)
		if err != nil {
			return refusal.From(refusal.Approval, err)
		}
		if !bytes.Equal(raw, item.Raw) {
			item.Replace(raw)
		}
	}
	return nil
}

// hookReasoning is a reasoning item as the hooks leave it. Encrypted values are for the provider alone.
func (r *run) hookReasoning(ctx context.Context, raw []byte) ([]byte, error) {
	o, ok := rawjson.Members(raw)
	for _, name := range []string{"summary", "content"} {
		value := o.Get(name)
		if !ok || value == nil {
			continue
		}
		left, err := r.Admission.Hooks().ModelValue(ctx, value)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(left, value) {
			o = o.Set(name, left)
			raw = o.Bytes()
		}
	}
	return raw, nil
}
