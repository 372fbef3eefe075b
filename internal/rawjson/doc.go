// Package rawjson takes JSON apart and puts it together with every value as it was written: a
// face sends most of a request on byte for byte, and looks at a few members. Read is strict
// (see internal/strictjson) and bounded; the other functions expect what was read strictly
// before, and go by quotes and brackets alone. All of it takes time linear in the length.
//
// It also says of a value whether a later reader could find a call in it (HoldsNoCall).
package rawjson
