package acp

import (
	"slices"

	"github.com/callgate/callgate/internal/acp/wire"
)

// maxShown bounds what a session may have shown when a prompt begins, in bytes.
const maxShown = 16 << 20

// transcript is what a session has shown, so that it can be shown again: messages of several pieces
// as one, and calls with what they came to.
type transcript struct {
	entries []*entry
	calls   map[string]*entry // by their ids
	size    int
}

// entry is one message, or one call.
type entry struct {
	chunk wire.MessageChunk
	text  []byte // of the chunk, if it is a text
	call  *wire.ToolCall
}

// add takes an update.
func (t *transcript) add(u wire.Update) {
	switch u := u.(type) {
	case wire.MessageChunk:
		t.addChunk(u)
	case wire.ToolCall:
		if t.calls == nil {
			t.calls = map[string]*entry{}
		}
		e := &entry{call: &u}
		t.entries, t.calls[u.ToolCallID] = append(t.entries, e), e
		t.size += sizeOf(&u.ToolDetails) + len(u.Title)
	case wire.ToolCallUpdate:
		if e := t.calls[u.ToolCallID]; e != nil {
			t.size += sizeOf(&u.ToolDetails)
			apply(e.call, &u)
		}
	}
}

func (t *transcript) addChunk(c wire.MessageChunk) {
	t.size += len(c.Content.Text) + len(c.Content.Data)
	if r := c.Content.Resource; r != nil && r.Text != nil {
		t.size += len(*r.Text)
	}
	if n := len(t.entries); n > 0 && c.Content.Type == wire.Text {
		if last := t.entries[n-1]; last.call == nil && last.text != nil && last.chunk.Kind == c.Kind &&
			last.chunk.MessageID == c.MessageID && c.MessageID != "" {
			last.text = append(last.text, c.Content.Text...)
			return
		}
	}
	t.size += 1 << 7
	e := &entry{chunk: c}
	if c.Content.Type == wire.Text {
		e.text = append([]byte{}, c.Content.Text...)
	}
	t.entries = append(t.entries, e)
}

// apply changes a call by an update of it.
func apply(c *wire.ToolCall, u *wire.ToolCallUpdate) {
	if u.Title != nil {
		c.Title = *u.Title
	}
	d := &c.ToolDetails
	if u.Name != "" {
		d.Name = u.Name
	}
	if u.Kind != "" {
		d.Kind = u.Kind
	}
	if u.Status != "" {
		d.Status = u.Status
	}
	if u.Content != nil {
		d.Content = u.Content
	}
	if u.Locations != nil {
		d.Locations = u.Locations
	}
	if u.RawInput != nil {
		d.RawInput = u.RawInput
	}
	if u.RawOutput != nil {
		d.RawOutput = u.RawOutput
	}
}

func sizeOf(d *wire.ToolDetails) int {
	size := len(d.RawInput) + len(d.RawOutput) + 1<<8
	for _, c := range d.Content {
		size += len(c.Content.Text) + len(c.NewText) + len(c.Path)
		if c.OldText != nil {
			size += len(*c.OldText)
		}
	}
	return size
}

// updates are the updates that show everything. A call that did not end has failed: nothing more is
// known of it.
func (t *transcript) updates() []wire.Update {
	var all []wire.Update
	for _, e := range t.entries {
		switch {
		case e.call == nil && e.text != nil:
			c := e.chunk
			c.Content.Text = string(e.text)
			all = append(all, c)
		case e.call == nil:
			all = append(all, e.chunk)
		default:
			c := *e.call
			if !c.Status.Ended() {
				c.Status = wire.Failed
				c.Content = append(slices.Clone(c.Content), wire.TextContent("The session ended before the call did."))
			}
			all = append(all, c)
		}
	}
	return all
}
