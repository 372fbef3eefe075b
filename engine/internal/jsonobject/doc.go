// Package jsonobject reads the members of a JSON object whose values are to be passed
// on byte for byte.
package jsonobject
