# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Turns the debug information of readelf --debug-dump=info into "layout NAME BYTES FIELD@OFFSET..."
# for each structure with a name.

/Abbrev Number: .*\(DW_TAG_/ {
    tag = $0
    sub(/.*\(DW_TAG_/, "", tag)
    sub(/\).*/, "", tag)
    depth = $1
    sub(/^</, "", depth)
    sub(/>.*/, "", depth)
    if (tag == "structure_type" && depth == 1) finish()
    on = on && (depth == 2 || tag == "structure_type")
    if (tag == "structure_type" && depth == 1) on = 1
    name = ""
}

on && /DW_AT_name/ {
    name = $NF
    if (tag == "structure_type") structure = name
}
on && tag == "structure_type" && /DW_AT_byte_size/ { bytes = $NF }
on && tag == "member" && /DW_AT_data_member_location/ { fields = fields " " name "@" $NF }

END { finish() }

function finish() {
    # A structure without bytes is only declared.
    if (structure != "" && bytes != "") print "layout " structure " " bytes fields
    structure = bytes = fields = ""
}
