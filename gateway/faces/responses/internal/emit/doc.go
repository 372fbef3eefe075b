// Package emit writes what the application gets of a response: its items, and the stream of its
// events. It decides nothing: what it is given has passed.
package emit
