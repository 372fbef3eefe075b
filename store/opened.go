package store

// openedCalls are the opened calls that a process keeps in memory.
type openedCalls struct {
	byID  map[string]*Call
	byKey map[scopedKey]*Call
}

// holder is the call that has the id or the key of another.
func (o *openedCalls) holder(c Call) *Call {
	if held := o.byID[c.ID]; held != nil {
		return held
	}
	if c.Key == "" {
		return nil
	}
	return o.byKey[scopedKey{c.Scope, c.Key}]
}

func (o *openedCalls) add(c *Call) {
	if o.byID == nil {
		o.byID, o.byKey = map[string]*Call{}, map[scopedKey]*Call{}
	}
	o.byID[c.ID] = c
	if c.Key != "" {
		o.byKey[scopedKey{c.Scope, c.Key}] = c
	}
}

// remove forgets a call, and returns it where it was there.
func (o *openedCalls) remove(id string) *Call {
	c := o.byID[id]
	if c == nil {
		return nil
	}
	delete(o.byID, id)
	if c.Key != "" {
		delete(o.byKey, scopedKey{c.Scope, c.Key})
	}
	return c
}
