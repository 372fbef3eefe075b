package store

type scopedKey struct {
	scope Scope
	key   string
}

// OpenedCalls are the calls that a process keeps in memory until they are dispatched.
type OpenedCalls struct {
	byID  map[string]*Call
	byKey map[scopedKey]*Call
}

// Owner returns the call that has the id or the key of c.
func (o *OpenedCalls) Owner(c Call) *Call {
	if owner := o.byID[c.ID]; owner != nil {
		return owner
	}
	if c.Key == "" {
		return nil
	}
	return o.byKey[scopedKey{c.Scope, c.Key}]
}

// Get returns a call by its id; nil if it is not there.
func (o *OpenedCalls) Get(id string) *Call { return o.byID[id] }

// Len is the number of calls.
func (o *OpenedCalls) Len() int { return len(o.byID) }

// Add adds a call.
func (o *OpenedCalls) Add(c *Call) {
	if o.byID == nil {
		o.byID, o.byKey = map[string]*Call{}, map[scopedKey]*Call{}
	}
	o.byID[c.ID] = c
	if c.Key != "" {
		o.byKey[scopedKey{c.Scope, c.Key}] = c
	}
}

// Remove removes a call and returns it; nil if it was not there.
func (o *OpenedCalls) Remove(id string) *Call {
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
