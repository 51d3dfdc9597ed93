(* Randomising every record (PRAM).

   A record with the value u is published as v with probability A u v, every
   record by itself. First the local epsilon (Theorem 1 of Ikarashi, Kikuchi, Chida
   and Takahashi and its corollaries), then Pk-anonymity (their Theorems 2 and 3):
   the records are also shuffled, and whoever knows the table, or believes anything
   about it, links a person to a published record with probability 1/k at most.

   Ratios are written without division, so that zeros are covered, too. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra ring.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Local.
Variables (R : realFieldType) (U V : Type).

(* E bounds the ratio of any two entries of a column. *)
Definition local_bound (A : U -> V -> R) (E : R) : Prop := forall u v w, A u w <= E * A v w.

End Local.

Section Tables.
Variables (R : realFieldType) (I V : finType) (U : Type).
Implicit Types (tau : I -> U) (o : {ffun I -> V}) (A : U -> V -> R).

(* The probability that the published table is o, and that it lies in S. *)
Definition pram A tau o : R := \prod_i A (tau i) (o i).
Definition pram_law A tau (S : pred {ffun I -> V}) : R := \sum_(o | S o) pram A tau o.

(* Theorem 1: replacing one record changes no probability by more than E. *)
Theorem pram_is_private A E : (forall u v, 0 <= A u v) -> local_bound A E ->
  forall tau sigma r (S : pred {ffun I -> V}), (forall i, i != r -> tau i = sigma i) ->
  pram_law A tau S <= E * pram_law A sigma S.
Proof.
move=> A_ge0 bound tau sigma r S same; rewrite mulr_sumr; apply: ler_sum => o _.
have split (t : I -> U) : pram A t o = A (t r) (o r) * \prod_(i | i != r) A (t i) (o i).
  by rewrite /pram (bigD1 r).
rewrite !split mulrA [X in _ * X <= _](eq_bigr (fun i => A (sigma i) (o i))) => [|i /same -> //].
by rewrite ler_wpmul2r ?bound // prodr_ge0.
Qed.

End Tables.

(* It is the smallest E, already for tables of one record. *)
Theorem pram_bound_is_tight (R : realFieldType) (V : finType) (U : Type) (A : U -> V -> R) E :
  (forall (tau sigma : 'I_1 -> U) (S : pred {ffun 'I_1 -> V}),
    pram_law A tau S <= E * pram_law A sigma S) -> local_bound A E.
Proof.
move=> private u v w.
have value (x : U) : pram_law A (fun _ : 'I_1 => x) (pred1 [ffun=> w]) = A x w.
  rewrite /pram_law (big_pred1 [ffun=> w]) // /pram (bigD1 ord0) //= ffunE big1 ?mulr1 // => i.
  by rewrite ord1.
by rewrite -!value private.
Qed.

Section Products.
Variables (R : realFieldType) (K : finType) (U V : K -> Type).
Variable (A : forall a, U a -> V a -> R).
Hypothesis A_ge0 : forall a u v, 0 <= A (a := a) u v.

(* Several attributes, each randomised by itself. *)
Definition product (u : forall a, U a) (v : forall a, V a) : R := \prod_a A (u a) (v a).

(* Corollary 1: the bounds multiply (their logarithms add up) ... *)
Theorem product_bound (E : K -> R) : (forall a, local_bound (A (a := a)) (E a)) ->
  local_bound product (\prod_a E a).
Proof.
move=> bound u v w; rewrite /product -big_split /=.
by apply: ler_prod => a _; rewrite A_ge0 bound.
Qed.

(* ... and nothing less will do if each is attained. *)
Theorem product_bound_is_tight (E : K -> R) :
    (forall a, exists u v w, A (a := a) u w = E a * A v w) ->
  exists u v w, product u w = (\prod_a E a) * product v w.
Proof.
move=> attained.
have {}attained a : exists x : U a * U a * V a, A x.1.1 x.2 = E a * A x.1.2 x.2.
  by have [u [v [w eq]]] := attained a; exists (u, v, w).
have [x eq_x] := fin_all_exists attained.
exists (fun a => (x a).1.1), (fun a => (x a).1.2), (fun a => (x a).2).
by rewrite /product -big_split /=; apply: eq_bigr.
Qed.

(* The same for the cross ratios that Pk-anonymity needs. *)
Definition cross_bound (U' V' : Type) (B : U' -> V' -> R) (c : R) : Prop :=
  forall u v u' v', c * (B u u' * B v v') <= B u v' * B v u'.

Theorem product_cross_bound (c : K -> R) : (forall a, 0 <= c a) ->
  (forall a, cross_bound (A (a := a)) (c a)) -> cross_bound product (\prod_a c a).
Proof.
move=> c_ge0 bound u v u' v'; rewrite /product -!big_split /=.
by apply: ler_prod => a _; rewrite bound !mulr_ge0.
Qed.

End Products.

Section Retention.
Variables (R : realFieldType) (V : finType) (rho : R).
Hypotheses (rho_ge0 : 0 <= rho) (rho_lt1 : rho < 1) (two : (1 < #|V|)%N).
Let n : R := #|V|%:R.
Let n_gt0 : 0 < n. Proof. by rewrite ltr0n (ltn_trans _ two). Qed.
Let s_gt0 : 0 < 1 - rho. Proof. by rewrite subr_gt0. Qed.

(* Keep a value with probability rho, else draw one uniformly. *)
Definition retention (u v : V) : R := rho * (u == v)%:R + (1 - rho) / n.

Definition retention_ratio : R := (1 + (n - 1) * rho) / (1 - rho).

Lemma retention_ratioE : retention_ratio * ((1 - rho) / n) = rho + (1 - rho) / n.
Proof.
have [n_neq0 s_neq0] := (lt0r_neq0 n_gt0, lt0r_neq0 s_gt0).
by rewrite /retention_ratio; field; apply/andP; split.
Qed.

Lemma retention_ratio_ge1 : 1 <= retention_ratio.
Proof.
rewrite ler_pdivl_mulr // mul1r ler_subl_addr -addrA ler_addl addr_ge0 // mulr_ge0 //.
by rewrite subr_ge0 ler1n ltnW.
Qed.

Lemma retention_ge0 u v : 0 <= retention u v.
Proof. by rewrite addr_ge0 ?mulr_ge0 ?invr_ge0 ?ler0n // ltW. Qed.

Lemma retention_low u v : (1 - rho) / n <= retention u v.
Proof. by rewrite ler_addr mulr_ge0 ?ler0n. Qed.

Lemma retention_high u v : retention u v <= retention_ratio * ((1 - rho) / n).
Proof.
rewrite retention_ratioE ler_add2r -[leRHS]mulr1 ler_wpmul2l //.
by case: (u == v); rewrite ?ler01.
Qed.

(* Corollary 2. *)
Theorem retention_bound : local_bound retention retention_ratio.
Proof.
move=> u v w; apply: le_trans (retention_high u w) _.
by rewrite ler_wpmul2l ?retention_low // (le_trans ler01 retention_ratio_ge1).
Qed.

Theorem retention_bound_is_attained : exists u v w, retention u w = retention_ratio * retention v w.
Proof.
have [u [v neq]] : exists u v : V, u != v.
  have /card_gt0P [u _] : (0 < #|V|)%N by rewrite (ltn_trans _ two).
  have /card_gt0P [v] : (0 < #|predC1 u|)%N by rewrite cardC1 -subn1 subn_gt0.
  by rewrite inE => neq; exists v, u.
exists u, v, u; rewrite /retention eqxx mulr1 eq_sym (negbTE neq) mulr0 add0r.
by rewrite retention_ratioE.
Qed.

(* The cross ratio of retention-replacement is the inverse square of that. *)
Theorem retention_cross_bound : cross_bound retention (retention_ratio ^- 2).
Proof.
move=> u v u' v'.
have ratio_gt0 : 0 < retention_ratio by apply: lt_le_trans retention_ratio_ge1.
rewrite ler_pdivr_mull ?exprn_gt0 // expr2 [leRHS](_ : _ =
  (retention_ratio * retention u v') * (retention_ratio * retention v u')); last by ring.
apply: ler_pmul; rewrite ?retention_ge0 //.
- apply: le_trans (retention_high u u') _; rewrite ler_pmul2l //; exact: retention_low.
- apply: le_trans (retention_high v v') _; rewrite ler_pmul2l //; exact: retention_low.
Qed.

End Retention.

Section Pk.
Variables (R : realFieldType) (I U V : finType).
Implicit Types (tau : {ffun I -> U}) (shown : {ffun I -> V}) (k : R) (pi : {perm I}).

(* A mechanism: for every table a law on tables in the same order, before shuffling. *)
Definition mechanism := {ffun I -> U} -> {ffun I -> V} -> R.

(* The shuffled table shown came from person i's record at place pi i. *)
Definition placed shown pi : {ffun I -> V} := [ffun i => shown (pi i)].

(* Up to a common factor, for a prior f on the tables: the probability that the
   published table is shown and r's record is at r', and that it is shown. *)
Definition linked (M : mechanism) (f : {ffun I -> U} -> R) shown r r' : R :=
  \sum_tau f tau * \sum_(pi : {perm I} | pi r == r') M tau (placed shown pi).
Definition seen_table (M : mechanism) (f : {ffun I -> U} -> R) shown : R :=
  \sum_tau f tau * \sum_(pi : {perm I}) M tau (placed shown pi).

(* No prior links anybody to a record with a probability above 1/k. *)
Definition pk_anonymous (M : mechanism) k shown : Prop :=
  forall f : {ffun I -> U} -> R, (forall tau, 0 <= f tau) ->
  forall r r', k * linked M f shown r r' <= seen_table M f shown.

Definition k_anonymous (k : nat) shown : Prop :=
  forall r', (k <= #|[set s | shown s == shown r']|)%N.

(* Knowing the table is the worst prior (Lemma 3 of the paper). *)
Lemma pk_pointwise M k shown : pk_anonymous M k shown <->
  forall tau r r', k * (\sum_(pi : {perm I} | pi r == r') M tau (placed shown pi))
                   <= \sum_(pi : {perm I}) M tau (placed shown pi).
Proof.
split=> [anonymous tau r r' | pointwise f f_ge0 r r'].
  have := anonymous (fun x => (x == tau)%:R) (fun x => ler0n _ _) r r'.
  have at_tau (g : {ffun I -> U} -> R) : \sum_x (x == tau)%:R * g x = g tau.
    by rewrite (bigD1 tau) //= eqxx mul1r big1 ?addr0 // => x /negbTE ->; rewrite mul0r.
  by rewrite /linked /seen_table !at_tau.
rewrite /linked /seen_table mulr_sumr; apply: ler_sum => tau _.
by rewrite mulrCA ler_wpmul2l.
Qed.

(* Places of r' by the person who is put there. *)
Lemma sum_by_place (W : {perm I} -> R) r' :
  \sum_(pi : {perm I}) W pi = \sum_t \sum_(pi : {perm I} | pi t == r') W pi.
Proof.
rewrite (partition_big (fun pi : {perm I} => (pi^-1)%g r') xpredT) //=.
apply: eq_bigr => t _; apply: eq_bigl => pi.
by apply/eqP/eqP => [<- | <-]; rewrite ?permKV ?permK.
Qed.

Lemma sum_by_swaps (W : {perm I} -> R) r r' :
  \sum_(pi : {perm I}) W pi = \sum_(pi : {perm I} | pi r == r') \sum_t W (tperm r t * pi)%g.
Proof.
rewrite (sum_by_place W r') exchange_big /=; apply: eq_bigr => t _.
rewrite (reindex_inj (mulgI (tperm r t))) /=; apply: eq_bigl => pi.
by rewrite permM tpermR.
Qed.

(* Lemma 1: k-anonymity is Pk-anonymity whatever the mechanism is. *)
Theorem k_anonymous_is_pk_anonymous (M : mechanism) (k : nat) shown :
  (forall tau o, 0 <= M tau o) -> k_anonymous k shown -> pk_anonymous M k%:R shown.
Proof.
move=> M_ge0 k_anon; apply/pk_pointwise => tau r r'.
set W := fun pi : {perm I} => M tau (placed shown pi).
have same x : shown x == shown r' ->
    \sum_(pi : {perm I} | pi r == x) W pi = \sum_(pi : {perm I} | pi r == r') W pi.
  move=> /eqP eq_x; rewrite (reindex_inj (mulIg (tperm x r'))) /=.
  apply: eq_big => [pi | pi _].
    by rewrite permM; apply/eqP/eqP => [eq | ->]; rewrite ?tpermR // -[pi r](tpermK x r') eq tpermL.
  congr (M tau _); apply/ffunP => i; rewrite !ffunE permM.
  by case: tpermP => [-> | -> | //]; rewrite eq_x.
have by_image : \sum_(pi : {perm I}) W pi = \sum_x \sum_(pi : {perm I} | pi r == x) W pi.
  by rewrite (partition_big (fun pi : {perm I} => pi r) xpredT).
rewrite by_image (bigID (fun x => shown x == shown r')) /=.
rewrite (eq_bigr _ same) sumr_const -[leLHS]addr0; apply: ler_add; last first.
  by apply: sumr_ge0 => x _; apply: sumr_ge0 => pi _; apply: M_ge0.
rewrite -[leRHS]mulr_natl -cardsE; apply: ler_wpmul2r; last by rewrite ler_nat; apply: k_anon.
by apply: sumr_ge0 => pi _; apply: M_ge0.
Qed.

(* Theorem 2: for deterministic mechanisms, and tables that can be published, they are the same. *)
Theorem pk_anonymous_is_k_anonymous (delta : {ffun I -> U} -> {ffun I -> V}) (k : nat) tau shown pi0 :
  delta tau = placed shown pi0 ->
  pk_anonymous (fun x o => (o == delta x)%:R) k%:R shown <-> k_anonymous k shown.
Proof.
move=> possible; split=> [/pk_pointwise pk r' | k_anon]; last first.
  by apply: k_anonymous_is_pk_anonymous => // x o; rewrite ler0n.
have := pk tau ((pi0^-1)%g r') r'; set r := (pi0^-1)%g r'.
set W := fun pi : {perm I} => (placed shown pi == delta tau)%:R : R.
have same x : shown x == shown r' ->
    \sum_(pi : {perm I} | pi r == x) W pi = \sum_(pi : {perm I} | pi r == r') W pi.
  move=> /eqP eq_x; rewrite (reindex_inj (mulIg (tperm x r'))) /=.
  apply: eq_big => [pi | pi _].
    by rewrite permM; apply/eqP/eqP => [eq | ->]; rewrite ?tpermR // -[pi r](tpermK x r') eq tpermL.
  congr ((_ == _)%:R); apply/ffunP => i; rewrite !ffunE permM.
  by case: tpermP => [-> | -> | //]; rewrite eq_x.
have none x : shown x != shown r' -> \sum_(pi : {perm I} | pi r == x) W pi = 0.
  move=> neq; apply: big1 => pi /eqP pi_r; rewrite /W possible.
  case: eqP => // /ffunP /(_ r); rewrite !ffunE pi_r permKV => eq.
  by rewrite eq eqxx in neq.
have -> : \sum_(pi : {perm I}) W pi = (\sum_(pi : {perm I} | pi r == r') W pi) *+ #|[set s | shown s == shown r']|.
  rewrite (partition_big (fun pi : {perm I} => pi r) xpredT) //=.
  rewrite (bigID (fun x => shown x == shown r')) /= [X in _ + X]big1 => [|x /none //].
  by rewrite addr0 (eq_bigr _ same) sumr_const -cardsE.
set N := \sum_(pi | _) W pi; have N_gt0 : 0 < N.
  rewrite /N (bigD1 pi0) /=; last by rewrite permKV.
  rewrite /W -possible eqxx ltr_paddr ?ltr01 //; apply: sumr_ge0 => pi _; exact: ler0n.
by rewrite -[N *+ _]mulr_natl ler_pmul2r // ler_nat.
Qed.

Section Pram.
Variable A : U -> V -> R.
Hypothesis A_ge0 : forall u v, 0 <= A u v.

Definition pram_mechanism : mechanism := fun tau o => pram A tau o.

(* Swapping two people's places changes two factors. *)
Lemma swap_places tau shown r t pi : t != r -> exists2 X, 0 <= X &
  pram A tau (placed shown pi) = A (tau r) (shown (pi r)) * A (tau t) (shown (pi t)) * X /\
  pram A tau (placed shown (tperm r t * pi)%g) = A (tau r) (shown (pi t)) * A (tau t) (shown (pi r)) * X.
Proof.
move=> neq; exists (\prod_(i | (i != r) && (i != t)) A (tau i) (shown (pi i))); first exact: prodr_ge0.
have split pi' : pram A tau (placed shown pi') = A (tau r) (shown (pi' r)) * (A (tau t) (shown (pi' t))
    * \prod_(i | (i != r) && (i != t)) A (tau i) (shown (pi' i))).
  rewrite /pram (bigD1 r) //= ffunE (bigD1 t) //= ffunE; congr (_ * (_ * _)).
  by apply: eq_bigr => i _; rewrite ffunE.
rewrite !split !permM tpermL tpermR !mulrA; split=> //; congr (_ * _).
by apply: eq_bigr => i /andP [neq_r neq_t]; rewrite permM tpermD // eq_sym.
Qed.

(* Theorem 3: a PRAM mechanism is Pk-anonymous exactly for
   k <= 1 + (n - 1) min A(u,v') A(v,u') / (A(u,u') A(v,v')), n the number of records. *)
Theorem pk_anonymity_of_pram k : (0 < #|I|)%N ->
  (forall shown, pk_anonymous pram_mechanism k shown) <->
  (forall u v u' v', (k - 1) * (A u u' * A v v') <= (#|I|%:R - 1) * (A u v' * A v u')).
Proof.
case/card_gt0P => r0 _; set n : R := #|I|%:R.
have others (r : I) : (#|[pred t | t != r]|)%:R = n - 1 :> R.
  have -> : n = #|[pred t | t != r]|.+1%:R; last by rewrite mulrS addrC addKr.
  rewrite /n (cardD1 r) inE; transitivity (#|[predD1 I & r]|.+1%:R : R) => //.
  by congr _.+1%:R; apply: eq_card => i; rewrite !inE andbT.
have n_ge1 : 0 <= n - 1 by rewrite -(others r0) ler0n.
split=> [anonymous u v u' v' | cross shown].
  pose tau : {ffun I -> U} := [ffun i => if i == r0 then u else v].
  pose shown : {ffun I -> V} := [ffun i => if i == r0 then u' else v'].
  have /pk_pointwise/(_ tau r0 r0) := anonymous shown.
  rewrite (sum_by_swaps _ r0 r0).
  set c := #|[pred pi : {perm I} | pi r0 == r0]|.
  set B := A v v' ^+ #|[pred t | t != r0]|.
  have stay pi : pi r0 == r0 -> pram A tau (placed shown pi) = A u u' * B.
    move=> /eqP pi_r; rewrite /pram (bigD1 r0) //= !ffunE pi_r eqxx; congr (_ * _).
    rewrite /B -prodr_const; apply: eq_big => [i | i neq]; first by rewrite !inE.
    by rewrite !ffunE (negbTE neq) -[X in _ == X]pi_r (inj_eq perm_inj) (negbTE neq).
  have moved pi t : pi r0 == r0 -> t != r0 ->
      A u u' * (A v v' * pram A tau (placed shown (tperm r0 t * pi)%g)) = A u v' * A v u' * (A u u' * B).
    move=> pi_r neq; have [X _ [stays moves]] := swap_places tau shown pi neq.
    have pi_t : pi t != r0 by rewrite -[X in _ != X](eqP pi_r) (inj_eq perm_inj).
    rewrite -(stay _ pi_r) moves stays !ffunE eqxx (negbTE neq) (eqP pi_r) eqxx (negbTE pi_t).
    by ring.
  have c_gt0 : 0 < c%:R :> R by rewrite ltr0n; apply/card_gt0P; exists 1%g; rewrite inE perm1.
  have sum_c (x : R) : \sum_(pi : {perm I} | pi r0 == r0) x = c%:R * x.
    by rewrite sumr_const mulr_natl.
  rewrite (eq_bigr _ stay) sum_c => anon.
  case: (ltrP 0 (A u u' * A v v')) => [pos | neg]; last first.
    have -> : A u u' * A v v' = 0 by apply/eqP; rewrite eq_le neg mulr_ge0.
    by rewrite mulr0 mulr_ge0 // mulr_ge0.
  have Auu : 0 < A u u' by rewrite lt_neqAle A_ge0 andbT eq_sym; apply: contraTneq pos => ->; rewrite mul0r ltxx.
  have Avv : 0 < A v v' by rewrite -(pmulr_rgt0 _ Auu).
  have B_gt0 : 0 < A u u' * B by rewrite mulr_gt0 // exprn_gt0.
  have total : A u u' * A v v' * (\sum_(pi : {perm I} | pi r0 == r0) \sum_t
        pram A tau (placed shown (tperm r0 t * pi)%g))
      = c%:R * (A u u' * B * (A u u' * A v v' + (n - 1) * (A u v' * A v u'))).
    rewrite mulr_sumr (eq_bigr (fun=> A u u' * B * (A u u' * A v v' + (n - 1) * (A u v' * A v u')))).
      by rewrite sum_c.
    move=> pi pi_r; rewrite (bigD1 r0) //= tperm1 mul1g (stay _ pi_r) [LHS]mulrDr mulr_sumr.
    rewrite (eq_bigr (fun=> A u v' * A v u' * (A u u' * B))) => [|t neq]; last by rewrite -mulrA moved.
    have -> (x : R) : \sum_(t | t != r0) x = (n - 1) * x by rewrite sumr_const -(others r0) mulr_natl.
    by ring.
  rewrite -(ler_pmul2l pos) total mulrCA in anon.
  move: anon; rewrite [leLHS](_ : _ = c%:R * (A u u' * B * (k * (A u u' * A v v')))); last by ring.
  rewrite ler_pmul2l // ler_pmul2l // => anon.
  by rewrite [leLHS]mulrBl mul1r ler_subl_addl.
apply/pk_pointwise => tau r r'; rewrite (sum_by_swaps _ r r') mulr_sumr.
apply: ler_sum => pi _; rewrite (bigD1 r) //= tperm1 mul1g -ler_subl_addl -{2}[pram_mechanism _ _]mul1r -mulrBl.
rewrite /pram_mechanism; set W := pram A tau (placed shown pi).
have each t : t != r -> (k - 1) * W <= (n - 1) * pram A tau (placed shown (tperm r t * pi)%g).
  move=> neq; have [X X_ge0 [stays moves]] := swap_places tau shown pi neq.
  by rewrite /W stays moves mulrA [leRHS]mulrA ler_wpmul2r // cross.
have summed : (n - 1) * ((k - 1) * W) <= (n - 1) * \sum_(t | t != r) pram A tau (placed shown (tperm r t * pi)%g).
  rewrite mulr_sumr -{1}(others r) mulr_natl -sumr_const; exact: ler_sum.
case: (ltrP 0 (n - 1)) => [n_gt1 | n_le1]; first by rewrite ler_pmul2l in summed.
apply: le_trans (_ : 0 <= _); last by apply: sumr_ge0 => t _; exact: prodr_ge0.
have n0 : n - 1 = 0 by apply/eqP; rewrite eq_le n_le1.
have W_ge0 : 0 <= W by exact: prodr_ge0.
case: (lerP k 1) => [k_le1 | k_gt1]; first by apply: mulr_le0_ge0; rewrite // subr_le0.
have := cross (tau r) (tau r) (shown (pi r)) (shown (pi r)); rewrite n0 mul0r => sq.
rewrite pmulr_rle0 ?subr_gt0 // in sq.
have Arr : A (tau r) (shown (pi r)) = 0.
  by apply/eqP; rewrite -sqrf_eq0 expr2 eq_le sq mulr_ge0.
by rewrite /W /pram (bigD1 r) //= ffunE Arr mul0r mulr0.
Qed.

(* So a bound on the cross ratios, which multiply over attributes, gives k. *)
Theorem pk_from_cross_ratios c : (0 < #|I|)%N -> cross_bound A c ->
  forall shown, pk_anonymous pram_mechanism (1 + (#|I|%:R - 1) * c) shown.
Proof.
move=> I_gt0 bound; apply/(pk_anonymity_of_pram _ I_gt0) => u v u' v'.
by rewrite addrAC subrr add0r -mulrA ler_wpmul2l // subr_ge0 ler1n.
Qed.

End Pram.
End Pk.
