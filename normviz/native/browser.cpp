// The tape in a browser: one model in one WebAssembly instance, and the numbers that it starts from.
//
// The same tape.cpp as the native library. JavaScript has no structs and no 64-bit offsets, so the model is
// kept here; assets/player/tape.js calls these functions, and `normviz.native.build` lists their names.
#include "tape.cpp"
#include "draws.cpp"

#include <cstdlib>

namespace {

Run model{};

}  // namespace

extern "C" {

// Memory for so many bytes, all zero; it is never given back: an instance trains one model.
void* room(int32_t bytes) {
    const size_t whole = ((size_t)bytes + 63) / 64 * 64;
    void* found = std::aligned_alloc(64, whole);
    if (found) std::memset(found, 0, whole);
    return found;
}

void set_model(const Op* ops, int32_t count, float* values, float* grads, float* parameters, float* parameter_grads,
               int32_t batch, int32_t length, int32_t heads, double* seen, float* scratch, double* sums) {
    model = {ops, count, values, grads, parameters, parameter_grads, nullptr, nullptr, batch, length, heads, 0, seen, scratch, sums, 0.0};
}

double forward(const int64_t* tokens, const int64_t* targets, int32_t watched) {
    model.tokens = tokens, model.targets = targets, model.watched = watched;
    tape_forward(&model);
    return model.loss;
}

void backward() { tape_backward(&model); }

void adamw(int32_t n, int32_t blocks, int32_t row, float* mean, float* square, double lr, double beta1, double beta2,
           double eps, double decay, int32_t step, double* ratios) {
    tape_adamw(n, blocks, row, const_cast<float*>(model.parameters), model.parameter_grads, mean, square, lr, beta1,
               beta2, eps, decay, step, ratios);
}

void scale(int32_t n, float* x, double factor) {
    each(n, [=, f = (float)factor](int64_t i) { x[i] *= f; });
}

void lengths(int32_t count, const float* base, const int64_t* offsets, int32_t n, double* out) {
    tape_lengths(count, base, offsets, n, out);
}

void stream(int32_t count, const int64_t* offsets, int32_t width, int32_t* sizes, double* out) {
    tape_stream(count, model.values, offsets, model.batch, model.length, width, model.scratch, sizes, model.sums, out);
}

void branches(int32_t count, const int64_t* reads, const int64_t* skip, const int64_t* branch, int32_t width, double* out) {
    tape_branches(count, model.values, reads, skip, branch, model.batch * model.length, width, out);
}

// `count` uniform numbers of a name, a seed and a step, from the word `first` on.
void draw_uniform(const uint8_t* name, int32_t length, double seed, double step, int32_t first, int32_t count, double* out) {
    draws::Words words(draws::name_word(name, length), (uint64_t)seed, (uint64_t)step, first);
    for (int32_t i = 0; i < count; i++) out[i] = draws::uniform(words.next());
}

// The factors of dropout, as `Dropout.mask` of normviz/model/branches.py makes them: 0, or 1 / (1 - p).
void draw_mask(const uint8_t* name, int32_t length, double seed, double step, int32_t count, double p, float* out) {
    draws::Words words(draws::name_word(name, length), (uint64_t)seed, (uint64_t)step, 0);
    const float kept = 1.0f / (float)(1.0 - p);
    for (int32_t i = 0; i < count; i++) out[i] = draws::uniform(words.next()) >= p ? kept : 0.0f;
}

// Initial values as `draw_into` of normviz/model/init.py makes them: normal numbers, or uniform ones in
// [-1, 1), times a size and a gain in float32.
void draw_values(const uint8_t* name, int32_t length, double seed, int32_t first, int32_t count, int32_t normal,
                 double size, double gain, float* out) {
    draws::Words words(draws::name_word(name, length), (uint64_t)seed, 0, first);
    for (int32_t i = 0; i < count; i++) {
        const uint64_t word = words.next();
        const double unit = normal ? draws::normal(word) : 2.0 * draws::uniform(word) - 1.0;
        out[i] = (float)unit * (float)size * (float)gain;
    }
}

}  // extern "C"
