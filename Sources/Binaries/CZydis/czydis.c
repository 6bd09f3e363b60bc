#include "czydis.h"
#include <Zydis/Zydis.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char *soname(void) {
    static char name[32];
    snprintf(name, sizeof name, "libZydis.so.%d.%d", (int)ZYDIS_VERSION_MAJOR(ZYDIS_VERSION), (int)ZYDIS_VERSION_MINOR(ZYDIS_VERSION));
    return name;
}

static ZydisDecoder decoder;
static ZyanStatus (*decode)(const ZydisDecoder *, ZydisDecoderContext *, const void *, ZyanUSize, ZydisDecodedInstruction *);

static const char *open_decoder(const char *folder) {
    static char why[512];
    void *library = NULL;
    if (decode) return NULL;
    if (folder) {
        char path[4096];
        if (snprintf(path, sizeof path, "%s/%s", folder, soname()) < (int)sizeof path) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) library = dlopen(soname(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(why, sizeof why, "the x86-64 decoder %s was not found: install libzydis%d.%d, or reinstall tracer", soname(),
                 (int)ZYDIS_VERSION_MAJOR(ZYDIS_VERSION), (int)ZYDIS_VERSION_MINOR(ZYDIS_VERSION));
        return why;
    }
    ZyanStatus (*init)(ZydisDecoder *, ZydisMachineMode, ZydisStackWidth) = dlsym(library, "ZydisDecoderInit");
    ZyanStatus (*mode)(ZydisDecoder *, ZydisDecoderMode, ZyanBool) = dlsym(library, "ZydisDecoderEnableMode");
    ZyanU64 (*version)(void) = dlsym(library, "ZydisGetVersion");
    void *found = dlsym(library, "ZydisDecoderDecodeInstruction");
    if (!init || !mode || !version || !found || version() >> 32 != ZYDIS_VERSION >> 32 ||
        !ZYAN_SUCCESS(init(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
        !ZYAN_SUCCESS(mode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE))) {
        snprintf(why, sizeof why, "%s is not the library that its name says: reinstall libzydis%d.%d", soname(),
                 (int)ZYDIS_VERSION_MAJOR(ZYDIS_VERSION), (int)ZYDIS_VERSION_MINOR(ZYDIS_VERSION));
        dlclose(library);
        return why;
    }
    *(void **)&decode = found;
    return NULL;
}

const char *x86_decoder_open(const char *folder) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    const char *why = open_decoder(folder);
    pthread_mutex_unlock(&mutex);
    return why;
}

// Intel SDM volume 2, 2.1.1: legacy prefixes come first, in any order, and a REX prefix after them.
static int has_prefix(const ZydisDecodedInstruction *in, const uint8_t *code, uint8_t prefix) {
    for (unsigned n = 0; n < in->length; n++) {
        switch (code[n]) {
        case 0xf0:
        case 0xf2:
        case 0xf3:
        case 0x66:
        case 0x67:
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0x64:
        case 0x65: break;
        default: return 0;
        }
        if (code[n] == prefix) return 1;
    }
    return 0;
}

// Intel SDM volume 2, appendix A: opcode maps. Legacy encodings alone have branches (but for APX, which no compiler uses by default).
static void classify(const ZydisDecodedInstruction *in, const uint8_t *code, struct x86_instruction *out) {
    unsigned reg = in->raw.modrm.reg;
    if (in->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) return;
    if (has_prefix(in, code, 0xf0)) out->flags |= X86_ATOMIC;
    if (in->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT) {
        switch (in->opcode) {
        case 0x70 ... 0x7f: out->kind = X86_CONDITIONAL; break;
        case 0xe0 ... 0xe3:
            out->kind = X86_CONDITIONAL;
            out->flags |= X86_SHORT_ONLY;
            break;
        case 0xe8: out->kind = X86_CALL; break;
        case 0xe9:
        case 0xeb: out->kind = X86_JUMP; break;
        case 0xc2:
        case 0xc3:
        case 0xca:
        case 0xcb:
        case 0xcf: out->kind = X86_RETURN; break;
        case 0xcc:
        case 0xf4: out->kind = X86_STOP; break;
        case 0x90: // pause is one, and xchg %r8, %rax is none
            if (!(in->attributes & ZYDIS_ATTRIB_HAS_REX) || in->raw.rex.B == 0) out->kind = X86_NOP;
            if (has_prefix(in, code, 0xf3)) out->flags |= X86_PAUSES;
            break;
        case 0xcd: out->kind = X86_SYSTEM; break;
        case 0x86:
        case 0x87: // xchg needs no prefix (Intel SDM volume 3, 9.1.2.1)
            if (in->raw.modrm.mod != 3) out->flags |= X86_ATOMIC;
            break;
        case 0xa4 ... 0xa7:
        case 0xaa ... 0xaf:
            if (has_prefix(in, code, 0xf2) || has_prefix(in, code, 0xf3)) out->flags |= X86_REPEATS;
            break;
        case 0x8d:
            if (out->displacement) out->kind = X86_LEA;
            break;
        case 0xc7:
            if (reg == 7 && in->raw.modrm.mod == 3) out->kind = X86_TRANSACTION;
            break;
        case 0xff:
            if (reg == 2 || reg == 3) out->kind = X86_INDIRECT_CALL;
            if (reg == 4 || reg == 5) {
                out->kind = X86_INDIRECT_JUMP;
                if (in->raw.modrm.mod == 3 || (in->raw.modrm.rm == 4 && in->raw.sib.index != 4)) out->flags |= X86_BY_TABLE;
            }
            break;
        }
    } else if (in->opcode_map == ZYDIS_OPCODE_MAP_0F) {
        switch (in->opcode) {
        case 0x80 ... 0x8f: out->kind = X86_CONDITIONAL; break;
        case 0x0b:
        case 0xb9:
        case 0xff: out->kind = X86_STOP; break;
        case 0x1f: out->kind = X86_NOP; break;
        case 0x05:
        case 0x34: out->kind = X86_SYSTEM; break;
        case 0x01: // monitorx, mwaitx
            if (in->raw.modrm.mod == 3 && reg == 7 && (in->raw.modrm.rm == 2 || in->raw.modrm.rm == 3)) out->flags |= X86_PAUSES;
            break;
        case 0xae: // tpause, umwait, umonitor; mfence has no prefix, and incssp has rep as umonitor has
            if (in->raw.modrm.mod == 3 && reg == 6 && (has_prefix(in, code, 0x66) || has_prefix(in, code, 0xf2))) out->flags |= X86_PAUSES;
            break;
        case 0x1e: // F3 0F 1E FA
            out->kind = in->length == 4 && code[0] == 0xf3 && code[3] == 0xfa ? X86_ENDBR : X86_OTHER;
            break;
        }
    }
}

// Intel SDM volume 2, 2.1.5: ModRM and SIB, and 2.2.1: REX.
static void note_base(const ZydisDecodedInstruction *in, struct x86_instruction *out) {
    out->base = X86_NO_BASE;
    if (in->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || in->raw.modrm.mod == 3) return;
    if (in->raw.modrm.rm == 4) {
        if ((in->raw.sib.base == 5 && in->raw.modrm.mod == 0) || in->raw.sib.index != 4 || in->raw.rex.X) return;
        out->base = (uint8_t)(in->raw.sib.base | in->raw.rex.B << 3);
    } else {
        if (in->raw.modrm.rm == 5 && in->raw.modrm.mod == 0) return;
        out->base = (uint8_t)(in->raw.modrm.rm | in->raw.rex.B << 3);
    }
    out->distance = (int32_t)in->raw.disp.value;
}

int x86_decode(const uint8_t *code, size_t byte_count, struct x86_instruction *out) {
    ZydisDecodedInstruction in;
    if (!decode || !ZYAN_SUCCESS(decode(&decoder, NULL, code, byte_count < 15 ? byte_count : 15, &in))) return 0;
    memset(out, 0, sizeof *out);
    out->length = in.length;
    out->opcode = in.opcode;
    out->base = X86_NO_BASE;
    if (in.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && in.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT) out->flags |= X86_LEGACY;
    if (in.raw.modrm.offset) {
        out->modrm = in.raw.modrm.offset;
        note_base(&in, out);
        if (in.raw.modrm.mod != 3) {
            if (in.raw.modrm.rm == 4 && in.raw.sib.base == 4 && in.raw.rex.B == 0) out->flags |= X86_STACK_BASE;
            if (in.raw.modrm.mod == 0 && in.raw.modrm.rm == 5 && in.raw.disp.size == 32) {
                out->displacement = in.raw.disp.offset;
                out->target = in.length + in.raw.disp.value;
            }
        }
    }
    classify(&in, code, out);
    if (in.raw.imm[0].is_relative) {
        out->immediate = in.raw.imm[0].offset;
        out->target = in.length + in.raw.imm[0].value.s;
    }
    return 1;
}
