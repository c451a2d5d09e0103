/**
 * Tells Grafast how it runs, before anything of it is loaded: without a word it warns on the terminal, and under
 * NODE_ENV=development or test it plans each query with slow checks of itself. Imported first, for its effect.
 */
process.env.GRAPHILE_ENV ??= 'production';
