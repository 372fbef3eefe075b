package turns

import (
	"bytes"
	"context"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
)

// Hooks at what a request brings back of earlier turns: arguments of calls at the point of calls, and
// the model's words at that of texts.

// HookMembers has the hooks see members of an object, which it changes in place, and reports whether
// it did. see returns what is left of the value of a member. Members that are null are not seen.
func HookMembers(o rawjson.Object, see func(name string, value []byte) ([]byte, error)) (changed bool, err error) {
	for i := range o {
		m := &o[i]
		if string(m.Value) == "null" {
			continue
		}
		left, err := see(m.Name, m.Value)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(left, m.Value) {
			m.Value, changed = left, true
		}
	}
	return changed, nil
}

// HookValue is a value that a model said in an earlier turn, as the hooks leave it. One that is sealed, by
// a signature or by an encrypted form beside it, cannot be changed, and what would be is denied.
func (r *Run) HookValue(ctx context.Context, value []byte, sealed bool) ([]byte, error) {
	left, err := r.Admission.Hooks().Brought(ctx, hook.Text, "", value)
	if err == nil && sealed && !bytes.Equal(left, value) {
		return nil, refusal.At(refusal.Request, refusal.HookDenied,
			"A hook of this gateway removes a part of what the model thought in an earlier turn of this request, "+
				"which cannot be done, since the model's provider has signed or encrypted it. Send the request without that part.")
	}
	return left, err
}

// modelPart is a part of what a model said in an earlier turn.
type modelPart struct {
	raw     []byte
	object  rawjson.Object // nil: it is none
	texts   []int          // its members that are texts
	changed bool
}

// HookParts is the list of parts of a turn of a model as the hooks leave it. The texts of all parts, which
// are their members text and refusal, are also seen as one text. see has the hooks see the rest of a part, as
// HookMembers does.
func (r *Run) HookParts(ctx context.Context, list []byte, see func(o rawjson.Object) (changed bool, err error)) ([]byte, error) {
	elements, ok := rawjson.Elements(list)
	if !ok {
		return list, nil
	}
	var parts []modelPart
	var texts []string
	for _, raw := range elements {
		p := modelPart{raw: raw}
		var err error
		if o, ok := rawjson.Members(raw); ok {
			p.object = o
			p.changed, err = see(o)
		} else {
			p.raw, err = r.HookValue(ctx, raw, false)
		}
		if err != nil {
			return nil, err
		}
		for i := range p.object {
			if text, ok := rawjson.String(p.object[i].Value); ok && IsTextMember(p.object[i].Name) {
				p.texts, texts = append(p.texts, i), append(texts, text)
			}
		}
		parts = append(parts, p)
	}
	left, err := r.hookTexts(ctx, texts)
	if err != nil {
		return nil, err
	}
	at := 0
	return rawjson.MapElements(list, func(i int, _ []byte) ([]byte, error) {
		p := &parts[i]
		reworded := false
		for _, member := range p.texts {
			if left[at] != texts[at] {
				p.object[member].Value, reworded = rawjson.Quote(left[at]), true
			}
			at++
		}
		if reworded {
			return p.object.Without("logprobs").Bytes(), nil // they say the same, token by token
		}
		if p.changed {
			return p.object.Bytes(), nil
		}
		return p.raw, nil
	})
}

// hookTexts is the texts of parts as the hooks leave them. They see each by itself, and all together:
// a match may span two, and one that begins at a word may be missed behind another text.
func (r *Run) hookTexts(ctx context.Context, texts []string) ([]string, error) {
	if len(texts) < 2 {
		return r.Admission.Hooks().TextsBrought(ctx, texts)
	}
	left := make([]string, len(texts))
	for i, text := range texts {
		alone, err := r.Admission.Hooks().TextsBrought(ctx, []string{text})
		if err != nil {
			return nil, err
		}
		left[i] = alone[0]
	}
	return r.Admission.Hooks().TextsBrought(ctx, left)
}

// IsTextMember reports whether a member of a part is its text, which HookParts has the hooks see by itself.
func IsTextMember(name string) bool { return name == "text" || name == "refusal" }

// IsSealed reports whether a part of what a model said is bound by its provider, by a signature or by an
// encrypted form beside it.
func IsSealed(o rawjson.Object) bool {
	for _, name := range []string{"signature", "encrypted_content"} {
		if seal := o.Get(name); seal != nil && string(seal) != `""` {
			return true
		}
	}
	return false
}
