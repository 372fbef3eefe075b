// Package rawjson reads foreign JSON that every reader must understand alike, takes it apart and
// puts it together with every value as it was written.
//
// Strict is JSON by RFC 8259 in valid UTF-8, without duplicate names in an object, without half of
// a surrogate pair, and nested no deeper than the caller allows. Names are compared byte for byte,
// after decoding their escapes. Check, Valid, Readable, Read, ReadMap and Reader judge bytes, and
// their errors say where the fault is and quote nothing. The other functions expect JSON that was
// checked, and go by quotes and brackets alone, in a small part of the time of a check; of other
// bytes they find anything. All of it takes time linear in the length.
//
// The package also says of a value whether a later reader could find a call in it (HoldsNoCall).
package rawjson
