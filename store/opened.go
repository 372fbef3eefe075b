package store

// openedCalls are the calls that a process keeps in memory until they are dispatched.
type openedCalls struct {
	byID  map[string]*Call
	byKey map[scopedKey]*Call
}

// holder returns the call that has the id or the key of c.
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

// remove removes a call and returns it; nil if it was not there.
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
